"""Trajectories of one stretch of a file as integers: what is left of them once strings are done.

Codes of passages are those of the whole pool: 0 .. N-1 the corpus by rank, then the support ids of
the oracle that are not in it. An id beyond both gets a code of its own within the chunk; it is only
ever compared with ids of its own row and of its question's support.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herald_jax.data.ragged import Int32, Ragged

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

# Why a row is set aside (SPEC section 1); the first that holds.
REASONS = ("not_logged", "no_oracle")


@dataclass(frozen=True, eq=False)
class Identities:
    """n rows as they were read, set aside or not, in the order of the file.

    Attributes:
        line: int64 [n] line or row in the file, from 1.
        trajectory: uint64 [n] hash of the trajectory id.
        question: uint64 [n] hash of the question id.
        text: uint64 [n] hash of the question's text.
        reason: uint8 [n] 0 where the row can be judged, else 1 + the place of its reason to be set
            aside in `REASONS`.
    """

    line: Int64
    trajectory: UInt64
    question: UInt64
    text: UInt64
    reason: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Chunk:
    """m rows that can be judged, in the order of the file.

    Attributes:
        line: int64 [m] line or row in the file, from 1.
        name_bytes: uint8 [total] trajectory ids in UTF-8, one after the other.
        name_ends: int64 [m] where each of them ends.
        question: int32 [m] index into the sorted question ids of the oracle.
        rollout: int64 [m].
        model: int32 [m] index into `models`.
        pool: int32 [m] index into `pools`.
        selected: bool [m].
        retrieved: m lists of id codes that the executed searches returned, repeats kept.
        citations: m lists of id codes, repeats kept.
        candidates: m lists of id codes that the log itself proposes for laundering, best first.
        candidates_logged: bool [m] whether the log proposes any list, be it empty.
        searches: int32 [m] executed searches.
        invalid: int32 [m] steps that are no executed search.
        repeated: bool [m] two executed searches have the same query key.
        answer_tokens: int32 [m] white-space tokens of the answer, `NO_ANSWER` when null.
        malformed: int32 [m] citation markers that could not be read.
        em: float64 [m] exact match of the answer (oracle).
        f1: float64 [m] token F1 of the answer (oracle).
        is_gold: bool [m] the answer is the first gold answer, character by character (oracle).
        models: distinct models of the chunk.
        pools: distinct pools of the chunk.
        identities: of all rows that could be read.
    """

    line: Int64
    name_bytes: NDArray[np.uint8]
    name_ends: Int64
    question: Int32
    rollout: Int64
    model: Int32
    pool: Int32
    selected: Bool
    retrieved: Ragged
    citations: Ragged
    candidates: Ragged
    candidates_logged: Bool
    searches: Int32
    invalid: Int32
    repeated: Bool
    answer_tokens: Int32
    malformed: Int32
    em: Float64
    f1: Float64
    is_gold: Bool
    models: list[str]
    pools: list[str]
    identities: Identities

    def __len__(self) -> int:
        return len(self.line)
