"""Search over a closed corpus: text queries in, passage codes out."""

from herald_jax.search.batches import Ranking
from herald_jax.search.index import CorpusIndex, IndexName, open_index

__all__ = ["CorpusIndex", "IndexName", "Ranking", "open_index"]
