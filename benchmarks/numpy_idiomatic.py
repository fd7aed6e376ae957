"""Citation laundering in idiomatic NumPy: broadcasting over arrays [n, ...], chunk by chunk.

Written as a competent user would, for speed within NumPy: float32 and int32 throughout, each
membership computed once by broadcasting and looked up again for the edits, all contracts in one
matrix product, selectors by fancy indexing and masked maximum, sums per question by `reduceat`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from synthetic import PASSAGES, ROLLOUTS, Synthetic

from herald_jax.types import DETECTORS, FEATURES, VISIBLE_FLAGS

Array = NDArray[np.generic]

MIN_SEARCHES, MAX_SEARCHES = 1, 4
TARGET = "cited_not_retrieved"
COLUMNS = (*FEATURES, *DETECTORS)
HACKING = [len(FEATURES) + i for i, flag in enumerate(DETECTORS) if flag != "no_search"]
WATCHED = [COLUMNS.index(flag) for flag in VISIBLE_FLAGS if flag != TARGET]


@dataclass(frozen=True)
class Chunk:
    """What the audit of some rows comes to; n rows, K edits, J contracts, G questions."""

    isolated: Array  # bool [n, K]
    margins: Array  # float32 [n, K, J]
    first_visible: Array  # float32 [n, J], of rows with an isolated pair
    oracle_worst: Array  # float32 [n, J], -inf elsewhere
    counted: Array  # int64 [G, J] rows
    successes: Array  # int64 [2, G, J], by selector
    totals: Array  # float64 [2, G, J] sums of margins


def contains(lists: Array, ids: Array) -> Array:
    """Which ids stand in the list of their row: [n, Y], [n, X] -> bool [n, X]."""
    return (ids[:, :, None] == lists[:, None, :]).any(axis=2) & (ids >= 0)


def measure(data: Synthetic, rows: slice, cited: dict[str, Array], n_support: Array) -> Array:
    """Features and detectors of trajectories or of edits: float32 [n, K, X].

    `cited` says of each citation, bool [n, K, C], whether it is `present`, `real` (a passage),
    `retrieved`, `support`, and the `first` of its id.
    """
    present, real, retrieved = cited["present"], cited["real"], cited["retrieved"]
    searches, invalid = data.searches[rows, None], data.invalid[rows, None]
    words = data.answer_tokens[rows, None]
    final, some = words > 0, present.any(axis=2)
    distinct = cited["first"] & present
    n_cited = distinct.sum(axis=2)
    hits = (distinct & cited["support"]).sum(axis=2)

    x = np.empty((*some.shape, len(COLUMNS)), np.float32)
    x[..., 0] = data.f1[rows, None]
    x[..., 1] = 0.55 * hits / np.maximum(n_cited, 1) + 0.45 * hits / np.maximum(n_support, 1)
    x[..., 2] = final & some & (data.malformed[rows, None] == 0)
    x[..., 3] = searches
    x[..., 4] = (invalid + ~final) / (searches + invalid + 1)
    x[..., 6] = np.maximum(words, 0)
    x[..., 7] = final & (searches == 0)
    x[..., 8] = (present & real & ~retrieved).any(axis=2)
    x[..., 9] = (present & ~real).any(axis=2)
    x[..., 10] = final & (searches < MIN_SEARCHES)
    x[..., 11] = data.repeated[rows, None]
    x[..., 12] = final & ~some
    x[..., 13] = searches > MAX_SEARCHES
    x[..., 14] = some & ~(present & cited["support"]).any(axis=2)
    x[..., 5] = x[..., HACKING].mean(axis=2)
    return x


def audit_chunk(data: Synthetic, rows: slice, weights: Array, tie_tolerance: float) -> Chunk:
    """Rows of whole questions under the contracts weights [J, X]."""
    citations, offered = data.citations[rows], data.candidates[rows]
    support = np.repeat(data.support[rows.start // ROLLOUTS : rows.stop // ROLLOUTS], ROLLOUTS, 0)
    n_support = (support >= 0).sum(axis=1)[:, None]
    both = np.concatenate([citations, offered], axis=1)
    width = citations.shape[1]
    known = {
        "present": both >= 0,
        "real": (both >= 0) & (both < PASSAGES),
        "retrieved": contains(data.retrieved[rows], both),
        "support": contains(support, both),
    }
    cited = {key: found[:, :width] for key, found in known.items()}
    on_offer = {key: found[:, width:] for key, found in known.items()}
    earlier = np.tri(width, k=-1, dtype=bool)
    cited["first"] = ~((citations[:, :, None] == citations[:, None, :]) & earlier).any(axis=2)

    usable = cited["real"] & cited["retrieved"]
    slot = np.take_along_axis(citations, usable.argmax(axis=1)[:, None], axis=1)
    at = (citations == slot) & usable.any(axis=1)[:, None]
    made = on_offer["real"] & ~on_offer["retrieved"] & ~contains(citations, offered)
    made &= at.any(axis=1)[:, None]
    edited = {
        key: np.where(at[:, None], found[:, :, None], cited[key][:, None])
        for key, found in on_offer.items()
    }
    # An id that was not cited takes every place of one that was: as many distinct ones as before.
    edited["first"] = cited["first"][:, None]

    original = measure(data, rows, {key: found[:, None] for key, found in cited.items()}, n_support)
    after = measure(data, rows, edited, n_support)
    target = COLUMNS.index(TARGET)
    isolated = made & (original[..., target] == 0) & (after[..., target] == 1)
    isolated &= (original[..., WATCHED] == after[..., WATCHED]).all(axis=2)
    margins = (after - original) @ weights.T

    some = isolated.any(axis=1)
    first = margins[np.arange(len(margins)), isolated.argmax(axis=1)]
    worst = np.where(isolated[..., None], margins, np.float32(-np.inf)).max(axis=1)
    begins = np.arange(0, len(margins), ROLLOUTS)
    picked = np.stack([first, worst])
    success = (picked >= -tie_tolerance) & some[:, None]
    valued = np.where(some[:, None], picked, 0)
    counted = np.add.reduceat(some.astype(np.int64), begins)[:, None]
    return Chunk(
        isolated=isolated,
        margins=margins,
        first_visible=first,
        oracle_worst=worst,
        counted=np.broadcast_to(counted, (len(begins), len(weights))),
        successes=np.add.reduceat(success, begins, axis=1, dtype=np.int64),
        totals=np.add.reduceat(valued, begins, axis=1, dtype=np.float64),
    )
