"""Search over a closed corpus: text queries in, passage codes out."""

from herald_jax.search.index import CorpusIndex, IndexName, Ranking

__all__ = ["CorpusIndex", "IndexName", "Ranking"]
