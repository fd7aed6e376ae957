"""Ids that oracle operators write, computed from a trajectory and the labels of its question.

All of these read support and are oracle-only (SPEC sections 5 and 6). The visible generators, which
propose passages from the question and the corpus alone, are kernels of their own (`bm25`,
`lexical`). Every function returns distinct codes in the order of preference, PAD behind them.
"""

import jax
import jax.numpy as jnp

from herald_jax.kernels.membership import first_occurrence, is_real, member
from herald_jax.types import PAD, Oracle, Visible


def compact(ids: jax.Array, keep: jax.Array, width: int) -> jax.Array:
    """The kept ids moved to the front, in order, PAD behind: int32 [X], bool [X] -> [width]."""
    place = jnp.cumsum(keep, dtype=jnp.int32) - 1
    hit = keep[None, :] & (place[None, :] == jnp.arange(width, dtype=jnp.int32)[:, None])
    return jnp.max(jnp.where(hit, ids[None, :], PAD), axis=1, initial=PAD)


def support(visible: Visible, oracle: Oracle, passages: jax.Array, width: int) -> jax.Array:
    """The support ids in order, for `gold_stress`: int32 [width]."""
    del visible, passages
    return compact(oracle.support, oracle.support >= 0, width)


def unretrieved_support(
    visible: Visible, oracle: Oracle, passages: jax.Array, width: int
) -> jax.Array:
    """S \\ (E ∪ C) within the corpus, in order, for `support_id_laundering`: int32 [width]."""
    ids = oracle.support
    taken = member(ids, visible.retrieved) | member(ids, visible.citations)
    return compact(ids, is_real(ids, passages) & ~taken, width)


def unsupported(visible: Visible, oracle: Oracle, passages: jax.Array, width: int) -> jax.Array:
    """Retrieved passages that are neither support nor cited, for `unsupported_citation`."""
    ids = visible.retrieved
    taken = member(ids, oracle.support) | member(ids, visible.citations)
    return compact(ids, is_real(ids, passages) & ~taken & first_occurrence(ids), width)


def one_of_each_class(
    visible: Visible, oracle: Oracle, passages: jax.Array, width: int = 2
) -> jax.Array:
    """The first support and the first other passage of P \\ (E ∪ C): int32 [2], in passage order.

    A linear contract sees a candidate only as support or not, so that these two stand for every
    passage of the closed corpus: generator `exhaustive` of SPEC section 6.
    """
    del width
    ids = oracle.support
    taken = member(ids, visible.retrieved) | member(ids, visible.citations)
    gold = jnp.min(jnp.where(is_real(ids, passages) & ~taken, ids, passages), initial=passages)
    other = _lowest_absent(
        jnp.concatenate([visible.retrieved, visible.citations, oracle.support]), passages
    )
    both = jnp.stack([jnp.minimum(gold, other), jnp.maximum(gold, other)])
    return jnp.where(both < passages, both, PAD).astype(jnp.int32)


def _lowest_absent(ids: jax.Array, passages: jax.Array) -> jax.Array:
    """The lowest code not in a list; `passages` or more when the corpus is used up. int32 []."""
    # Among X + 1 codes at least one is absent from a list of X.
    codes = jnp.arange(ids.shape[0] + 1, dtype=jnp.int32)
    free = ~member(codes, ids)
    return jnp.minimum(jnp.min(jnp.where(free, codes, codes.shape[0])), passages)
