"""Trajectories of the plain reference as arrays: an encoding of its own, by lists and loops.

`herald_jax.data` has the encoder that audits use. The kernels are tested with this one, so that no
fault of that one can hide a fault of theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from reference.detectors import detect, retrieved_ids
from reference.metrics import exact_match, f1
from reference.records import executed_searches
from reference.settings import HACKING, Settings

from herald_jax.kernels.detectors import Limits
from herald_jax.kernels.features import FeatureWeights
from herald_jax.kernels.programs import Rules
from herald_jax.types import DETECTORS, NO_ANSWER, PAD, Oracle, Visible


@dataclass(frozen=True)
class Row:
    """A trajectory and the gold of its question, as the reference takes them."""

    trajectory: dict
    gold: dict


@dataclass(frozen=True)
class Rows:
    """Trajectories over one corpus; `corpus` holds the passage ids, in any order."""

    corpus: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Widths:
    retrieved: int = 16
    citations: int = 8
    support: int = 4


class Codes:
    """Passages by the rank of their id, every other id from N upwards as it turns up."""

    def __init__(self, corpus: Sequence[str]):
        self.passages = np.int32(len(corpus))
        self._codes = {name: code for code, name in enumerate(sorted(corpus))}

    def of(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    def padded(self, names: Sequence[str], width: int) -> np.ndarray:
        """int32 [width]."""
        assert len(names) <= width, "the test's shapes are too narrow for what it drew"
        out = np.full(width, PAD, np.int32)
        out[: len(names)] = [self.of(name) for name in names]
        return out


def words(text: str | None) -> int:
    return NO_ANSWER if text is None else len(text.split())


def visible_row(row: Row, codes: Codes, widths: Widths, settings: Settings) -> Visible:
    trajectory = row.trajectory
    searches = len(executed_searches(trajectory))
    flags = detect(trajectory, (), (), settings)
    return Visible(
        retrieved=codes.padded(retrieved_ids(trajectory), widths.retrieved),
        citations=codes.padded(trajectory["citations"], widths.citations),
        searches=np.int32(searches),
        invalid=np.int32(len(trajectory["steps"]) - searches),
        repeated=np.bool_(flags["repeated_query"]),
        answer_tokens=np.int32(words(trajectory["answer"])),
        malformed=np.int32(trajectory["malformed_citations"]),
    )


def oracle_row(row: Row, codes: Codes, widths: Widths) -> Oracle:
    answer, golds = row.trajectory["answer"], row.gold["answers"]
    first = golds[0] if golds else None
    return Oracle(
        support=codes.padded(row.gold["support_ids"], widths.support),
        em=np.float32(exact_match(answer, golds)),
        f1=np.float32(f1(answer, golds)),
        gold_em=np.float32(exact_match(first, golds) if golds else np.nan),
        gold_f1=np.float32(f1(first, golds) if golds else np.nan),
        gold_tokens=np.int32(words(first)),
        is_gold=np.bool_(bool(golds) and answer == first),
    )


def stack(trees):
    """Trajectories side by side, along the last axis."""
    first = trees[0]
    columns = {
        name: np.stack([getattr(tree, name) for tree in trees], axis=-1) for name in vars(first)
    }
    return type(first)(**columns)


def encode(
    block: Rows, widths: Widths, settings: Settings | None = None
) -> tuple[Visible, Oracle, Codes]:
    """`Visible` and `Oracle` of a block, trajectories along the last axis, and its id table."""
    codes = Codes(block.corpus)
    settings = settings or Settings()
    return (
        stack([visible_row(row, codes, widths, settings) for row in block.rows]),
        stack([oracle_row(row, codes, widths) for row in block.rows]),
        codes,
    )


def rules(settings: Settings | None = None) -> Rules:
    """Thresholds and weights of the reference, as the kernels take them."""
    settings = settings or Settings()
    return Rules(
        limits=Limits(
            min_searches=jnp.int32(settings.min_searches),
            max_searches=jnp.int32(settings.max_searches),
        ),
        weights=FeatureWeights(
            precision=jnp.float32(0.55),
            recall=jnp.float32(0.45),
            hacking=jnp.array(
                [float(name in HACKING) / len(HACKING) for name in DETECTORS], jnp.float32
            ),
        ),
    )
