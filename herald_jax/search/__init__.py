"""Search over a closed corpus: text queries in, passage codes out."""

from herald_jax.search.index import CorpusIndex

__all__ = ["CorpusIndex"]
