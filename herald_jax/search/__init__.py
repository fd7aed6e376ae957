"""Search over a closed corpus: text queries in, passage codes out."""
