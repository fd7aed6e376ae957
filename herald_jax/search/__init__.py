"""Search over a closed corpus: text queries in, passage codes out."""

from herald_jax.search.batches import Ranking
from herald_jax.search.index import CorpusIndex, IndexName, open_index
from herald_jax.search.saved import IndexRefusedError

__all__ = ["CorpusIndex", "IndexName", "IndexRefusedError", "Ranking", "open_index"]
