"""Which rollout of a question each selection takes."""

import hashlib

import numpy as np
import pytest
import tiny_audits as tiny

from herald_jax.audit.selections import best, first_of, hashed_rollout, select


def chosen(of, selection):
    """Ids of the rows that a selection takes, over all blocks."""
    return {
        of.rows.name(row)
        for block in tiny.blocks(of)
        for row in block.place.rows[select(block, selection)]
    }


def table(rows):
    return np.array(rows, np.float32)


def flags(rows):
    return np.array(rows, bool)


def test_the_best_are_those_within_the_tolerance_of_the_highest():
    scores = table([[1.0, 1.0 - 5e-7, 1.0 - 2e-6], [0.0, 2.0, 2.0]])
    everyone = np.ones_like(scores, bool)
    found = best(scores, everyone, 1e-6)
    assert found.tolist() == [[True, True, False], [False, True, True]]
    assert first_of(found).tolist() == [[True, False, False], [False, True, False]]
    # Only those among whom it is asked; a question of which none is, has none.
    among = flags([[False, True, True], [False, False, False]])
    assert best(scores, among, 1e-6).tolist() == [[False, True, False], [False] * 3]
    assert first_of(flags([[False, False]])).tolist() == [[False, False]]


def test_a_score_that_is_no_number_is_below_all_others():
    scores = table([[np.nan, -5.0, np.inf], [np.nan, np.nan, np.nan]])
    found = best(scores, np.ones_like(scores, bool), 1e-6)
    # Without a number anywhere nothing tells the rollouts apart: all are equal.
    assert found.tolist() == [[False, True, False], [True, True, True]]


@pytest.mark.parametrize("question", ["q", "Zoë", "質問", ""])
@pytest.mark.parametrize("rollouts", [1, 2, 3, 7])
def test_hash_random_is_the_digest_modulo_the_rollouts(question, rollouts):
    digest = hashlib.sha256(question.encode("utf-8")).hexdigest()
    # Eight bytes are sixteen hexadecimal digits, the first the most significant.
    assert hashed_rollout(question, rollouts) == int(digest[:16], 16) % rollouts


def test_a_digest_worked_out_apart():
    # printf abc | sha256sum: ba7816bf8f01cfea4141...; 0xba7816bf8f01cfea = 13436514500253700074.
    assert hashed_rollout("abc", 10) == 4
    assert hashed_rollout("abc", 1000) == 74


def rollouts(question, n, **changes):
    return [tiny.log(f"{question}-{i}", question, rollout=i, **changes) for i in range(n)]


def test_first_and_all():
    of = tiny.pool([*rollouts("q", 3), *rollouts("r", 3)])
    assert chosen(of, "first") == {"q-0", "r-0"}
    assert chosen(of, "all") == {f"{q}-{i}" for q in "qr" for i in range(3)}


def test_rollouts_of_one_number_go_by_trajectory_id():
    of = tiny.pool([tiny.log("t10"), tiny.log("t9"), tiny.log("z", rollout=-1)])
    assert chosen(of, "first") == {"z"}
    assert chosen(tiny.pool([tiny.log("t9"), tiny.log("t10")]), "first") == {"t10"}


def test_hash_random_counts_the_rollouts_that_are_left():
    logs = [*rollouts("q", 3), *rollouts("r", 3)]
    # Of r the first was not logged; the other two are its rollouts 0 and 1.
    logs[3].citations = None
    of = tiny.pool(logs)
    assert of.set_aside == {"not_logged": 1}
    left = {"q": ["q-0", "q-1", "q-2"], "r": ["r-1", "r-2"]}
    expected = set()
    for question, names in left.items():
        digest = int(hashlib.sha256(question.encode()).hexdigest()[:16], 16)
        expected.add(names[digest % len(names)])
    assert chosen(of, "hash_random") == expected


def test_stored_takes_what_is_marked_be_it_several_or_none():
    logs = [*rollouts("q", 3), *rollouts("r", 3)]
    assert chosen(tiny.pool(logs), "stored") == set()
    for row in (0, 2):
        logs[row].selected = True
    assert chosen(tiny.pool(logs), "stored") == {"q-0", "q-2"}


def test_r0_best_and_gold_informed_differ_where_reward_and_gold_do():
    cheap = tiny.log("cheap", answer="Ada B", rollout=0, citations=["a", "b"])
    # EM 1 for all it costs; cites no support.
    right = tiny.log("right", rollout=1, searches=[["c"]] * 4, citations=["c"])
    # As right, with fewer searches, so of higher reward.
    thrifty = tiny.log("thrifty", rollout=2, searches=[["c"]] * 1, citations=["c"])
    same = tiny.log("same", rollout=3, searches=[["c"]] * 1, citations=["c"])
    of = tiny.pool([cheap, right, thrifty, same])
    # F1 of "Ada B" against "Ada" is 2/3: 0.77 for the answer, and 1.05 for all of the support.
    assert chosen(of, "r0_best") == {"cheap"}
    # EM first, then F1, then R0, then the lowest rollout.
    assert chosen(of, "gold_informed") == {"thrifty"}
    assert chosen(tiny.pool([same, thrifty, right]), "gold_informed") == {"thrifty"}


def test_an_unknown_selection_is_an_error():
    with pytest.raises(ValueError, match="unknown selection 'last'"):
        select(tiny.block(tiny.pool([tiny.log("t")])), "last")
