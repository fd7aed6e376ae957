"""Candidates of a visible generator for every trajectory of a pool (SPEC section 6)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from herald_jax.audit.generators import Generator
from herald_jax.audit.operators import Operator
from herald_jax.audit.staging import Block, Codes
from herald_jax.audit.trials import OFFER_WIDTHS
from herald_jax.data.blocks import bucket
from herald_jax.data.pool import Pool
from herald_jax.search import CorpusIndex
from herald_jax.types import PAD


def propose(
    generator: Generator,
    pool: Pool,
    corpus: CorpusIndex,
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> Codes:
    """Ranked candidates of every row: int32 [n, k], PAD where there are fewer.

    The generator is given the question, the answer and the ids that were retrieved or cited, which
    it must not return; nothing else of the trajectory, and no label.
    """
    if generator.ranking is None:
        raise ValueError(f"generator {generator.name!r} does not rank")
    rows = pool.rows
    texts = [
        f"{pool.questions[question]} {record.answer or ''}"
        for question, record in zip(rows.question, rows.records, strict=True)
    ]
    taken = [
        np.concatenate([rows.retrieved[row], rows.citations[row]]) for row in range(len(texts))
    ]
    ranked, _ = corpus.rank(generator.ranking, generator.index, texts, taken, k, progress=progress)
    return ranked


def of_block(candidates: Codes, block: Block) -> Codes:
    """Candidates of a block's rows, padded to one of few widths: int32 [K, B]."""
    width = bucket(candidates.shape[1], OFFER_WIDTHS)
    out = np.full((width, len(block.place.rows)), PAD, np.int32)
    out[: candidates.shape[1], block.real] = candidates[block.place.rows[block.real]].T
    return out


def closed_corpus(operator: Operator, generator: Generator) -> Operator:
    """An operator whose candidates are found by an oracle generator from gold labels."""
    if generator.offer is None:
        raise ValueError(f"generator {generator.name!r} has no offer")
    return replace(operator, offers=generator.offer, oracle=True)
