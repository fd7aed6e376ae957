"""What searches of rollouts are worth as evidence: gold labels and rollouts as arrays (oracle)."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from herald_jax.data.ids import IdTable
from herald_jax.data.metrics import contains
from herald_jax.data.records import OracleRow, Passage
from herald_jax.kernels.retrieval_credit import answer_match, coverage, events
from herald_jax.train.rollout import Rollout
from herald_jax.types import PAD, pytree


@pytree
class Searched:
    """The searches of B rollouts, Q places each in the order in which they were made."""

    executed: jax.Array  # bool [B, Q]
    events: jax.Array  # float32 [B, Q] of the chosen signal
    call_tokens: jax.Array  # int32 [B, Q] tokens of the turn
    query_tokens: jax.Array  # int32 [B, Q] tokens of its query, 0 where it cannot be told
    coverage: jax.Array  # float32 [B] share of the nodes covered at the end
    has_nodes: jax.Array  # bool [B] the question has an evidence graph


class Evidence:
    """Evidence graphs and gold answers of all questions.

    A question without nodes has no events and its coverage is not measured (SPEC section 13.14).

    Args:
        passages: the corpus.
        oracle: gold labels.
        rules: answer rules, for `answer_match`.
    """

    def __init__(
        self, passages: Sequence[Passage], oracle: Sequence[OracleRow], rules: str
    ) -> None:
        self._ids = IdTable(sorted(passage.passage_id for passage in passages))
        self._golds = {row.question_id: row.answers for row in oracle}
        self._texts = {p.passage_id: f"{p.title} {p.text}" for p in passages}
        self._rules = rules
        self._row = {row.question_id: at for at, row in enumerate(oracle)}
        graphs = [row.nodes for row in oracle]
        most = max((len(nodes) for nodes in graphs), default=1) or 1
        wide = max((len(node.support_ids) for nodes in graphs for node in nodes), default=1) or 1
        self._nodes = np.zeros((len(oracle), most), np.bool_)
        self._supports = np.full((len(oracle), most, wide), PAD, np.int32)
        self._depends = np.zeros((len(oracle), most, most), np.bool_)
        for at, nodes in enumerate(graphs):
            place = {node.node_id: n for n, node in enumerate(nodes)}
            for n, node in enumerate(nodes):
                self._nodes[at, n] = True
                self._supports[at, n, : len(node.support_ids)] = self._ids.encode(node.support_ids)
                self._depends[at, n, [place[name] for name in node.depends_on]] = True

    def searched(self, rollouts: Sequence[Rollout], places: int, signal: str) -> Searched:
        """The searches of rollouts, and what each brought.

        Args:
            rollouts: B of them.
            places: Q, most searches of a rollout.
            signal: `none`, `cov`, `cov_dep` or `answer_match`.
        """
        shape = (len(rollouts), places)
        executed = np.zeros(shape, np.bool_)
        matched = np.zeros(shape, np.bool_)
        calls, queries = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        wide = max((len(s.retrieved) for run in rollouts for s in run.searches), default=1) or 1
        retrieved = np.full((*shape, wide), PAD, np.int32)
        for at, run in enumerate(rollouts):
            for k, search in enumerate(run.searches):
                executed[at, k] = True
                calls[at, k] = search.call[1] - search.call[0]
                queries[at, k] = search.query[1] - search.query[0] if search.query else 0
                retrieved[at, k, : len(search.retrieved)] = self._ids.encode(search.retrieved)
                if signal == "answer_match":
                    golds = self._golds[run.task.question_id]
                    matched[at, k] = any(
                        contains(self._texts[name], golds, self._rules) for name in search.retrieved
                    )
        rows = [self._row[run.task.question_id] for run in rollouts]
        covered, rises = _signals(
            retrieved,
            self._supports[rows],
            self._depends[rows],
            self._nodes[rows],
            executed,
            matched,
            signal=signal,
        )
        return Searched(
            executed=jnp.asarray(executed),
            events=rises,
            call_tokens=jnp.asarray(calls),
            query_tokens=jnp.asarray(queries),
            coverage=covered,
            has_nodes=jnp.asarray(self._nodes[rows].any(axis=1)),
        )


@partial(jax.jit, static_argnames="signal")
def _signals(
    retrieved: jax.Array,
    supports: jax.Array,
    depends: jax.Array,
    nodes: jax.Array,
    executed: jax.Array,
    matched: jax.Array,
    *,
    signal: str,
) -> tuple[jax.Array, jax.Array]:
    """Coverage at the end, float32 [B], and events of the signal, float32 [B, Q]."""
    found = jax.vmap(coverage)(retrieved, supports, depends, nodes)
    values = {
        "none": jnp.zeros_like(found.cov),
        "cov": found.cov,
        "cov_dep": found.cov_dep,
        "answer_match": jax.vmap(answer_match)(matched, executed),
    }[signal]
    return jnp.max(found.cov, axis=1, initial=0.0), jax.vmap(events)(values, executed)
