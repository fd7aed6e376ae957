"""Candidates that the log itself proposes: every figure is that of a plain reading."""

import random
from dataclasses import replace

import numpy as np
import pytest
import tiny_audits as tiny
from audit_comparison import both, differences
from reference import hostile
from reference.records import as_id

from herald_jax.audit.candidates import Candidates
from herald_jax.audit.generators import GENERATORS
from herald_jax.types import PAD


def proposing(seed: int):
    """A hostile pool whose logs propose anything: retrieved, cited, repeated, foreign, or nothing.

    Some propose more than any width that lists are padded to.
    """
    rng = random.Random(seed)
    trajectories, passages, oracle = hostile.pool(seed)
    known = [as_id(passage["passage_id"]) for passage in passages]
    for row in trajectories:
        seen = [name for step in row["steps"] for name in step.get("retrieved") or ()]
        seen += row.get("citations") or []
        ids = [*known, *known, *seen, "nowhere", "p1 ", 7, 70]
        count = rng.choice((None, 0, 1, 3, 9, 40))
        if count is not None:
            row["candidates"] = rng.choices(ids, k=count)
        elif rng.random() < 0.5:
            row["candidates"] = None
    return trajectories, passages, oracle


@pytest.mark.parametrize("seed", range(9))
def test_every_figure_is_the_references(seed, tmp_path):
    settings = hostile.settings(seed)
    settings = replace(
        settings,
        max_searches=max(settings.min_searches, settings.max_searches),
        generator=settings.generator if seed % 3 == 2 else "stored",
        budget_generator=settings.budget_generator if seed % 3 == 1 else "stored",
    )
    expected, report = both(tmp_path, proposing(seed), settings)
    assert differences(expected, report.data) == []
    reads = report.data["generators"]["stored"]["reads"]
    assert "candidates" in reads and not {"question", "answer", "support_ids"} & set(reads)


def proposed(names, k):
    """What is offered to one trajectory that retrieved a and b and cites b and an unknown id."""
    log = tiny.log("t", searches=[["a", "b"]], citations=["b", "x"], candidates=names)
    passages = dict.fromkeys([*"abcdefghij"], "the mill")
    pool = tiny.pool([log], passages=passages)
    block = tiny.block(pool)
    found = Candidates(pool.rows, {"stored": 50}, None, pool.longest.candidates)
    offered = found.of_block("stored", block, k)
    (column,) = np.flatnonzero(block.real)
    assert (np.delete(offered, column, axis=1) == PAD).all()
    codes = offered[:, column].tolist()
    ids = [pool.ids.decode(code) for code in codes if code != PAD]
    assert codes == codes[: len(ids)] + [PAD] * (len(codes) - len(ids))
    return ids


@pytest.mark.parametrize(
    ("names", "k", "offered"),
    [
        (None, 8, []),
        ([], 8, []),
        (["c", "d"], 8, ["c", "d"]),
        (["d", "c"], 8, ["d", "c"]),  # best first, not by id
        (["a", "b", "x", "y", "c"], 8, ["c"]),  # retrieved, cited, of no passage
        (["a"] * 40, 8, []),
        (["c", "c", "d", "c"], 8, ["c", "d"]),
        # What is passed over takes no place of the budget.
        (["a", "c", "c", "y", "d", "e"], 2, ["c", "d"]),
        (["c", "d", "e"], 1, ["c"]),
        (["j", "i", "h", "g", "f", "e", "d", "c"], 8, ["j", "i", "h", "g", "f", "e", "d", "c"]),
        (["y"] * 40 + ["c"], 1, ["c"]),
    ],
)
def test_what_is_offered(names, k, offered):
    assert proposed(names, k) == offered


def test_it_needs_no_index():
    assert GENERATORS["stored"].ranking is None

    def pool(**fields):
        return replace(tiny.pool([tiny.log("t", **fields)]), index=None)

    settings = {
        "generators": {"primary": "stored", "budget_generators": ["stored"], "budgets": [1]},
        "sections": {"budgets": True, "worst_examples": 1},
    }
    report = tiny.run(pool(candidates=["d"]), **settings).data
    (attack,) = [e for e in report["worst"] if e["operator"] == "citation_laundering"]
    assert attack["after"]["citations"] == ["d"]
    assert report["budgets"]["stored"]["1"]["first_visible"]["R0"]["questions"] == 1
    # Without a list nothing is proposed, and nothing is made up.
    report = tiny.run(pool(), **settings).data
    assert report["operators"]["citation_laundering"]["status"]["no_edit"] == 1
