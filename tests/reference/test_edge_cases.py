"""The edge cases that the definitions settle, one by one, in their order (section 13)."""

import hashlib
import math

import pytest

from reference.audit import audit
from reference.cells import upper_bound
from reference.generators import Corpus, candidates, exhaustive
from reference.metrics import exact_match, f1
from reference.operators import OPERATORS
from reference.pools import SELECTIONS, hashed_index, select
from reference.records import as_id, complete_oracle, complete_trajectory, passage_texts
from reference.rewards import contracts, judge, margin
from reference.settings import Settings

U, L, M = "no_search", "cited_not_retrieved", "support_id_mismatch"
SEARCH = {"query": "mill", "retrieved": ["a", "b"]}
PASSAGES = [{"passage_id": p, "text": f"mill {p}"} for p in ("a", "b", "c", "d")]
EMPTY = {"questions": 0}


def row(trajectory_id: str = "t", **fields) -> dict:
    """A careful trajectory, unless `fields` say otherwise."""
    return {
        "trajectory_id": trajectory_id,
        "question_id": "q",
        "question": "who built the mill",
        "steps": [SEARCH],
        "answer": "Ada",
        "citations": ["a"],
    } | fields


def gold(**fields) -> dict:
    return {"question_id": "q", "answers": ["Ada"], "support_ids": ["a"]} | fields


def edits(operator: str, trajectory: dict, labels: dict | None = None, ids=()) -> list[dict]:
    return OPERATORS[operator].edits(
        complete_trajectory(trajectory),
        complete_oracle(labels or gold()),
        {p["passage_id"] for p in PASSAGES},
        ids,
    )


def cited(found: list[dict]) -> list[list[str]]:
    return [edited["citations"] for edited in found]


def status(operator: str, trajectory: dict, labels: dict | None = None, **settings) -> str:
    """What became of the only row of a pool."""
    report = audit([trajectory], PASSAGES, [labels or gold()], Settings(**settings))
    (found,) = (k for k, rows in report["operators"][operator]["status"].items() if rows)
    return found


# 13.1


def test_an_edit_equal_to_the_original_is_no_edit():
    assert status("same_final_deletion", row(steps=[])) == "no_edit"
    assert status("citation_drop", row(citations=[])) == "no_edit"
    assert status("gold_stress", row(steps=[])) == "no_edit"
    assert status("gold_stress", row(steps=[], malformed_citations=1)) == "ineligible"


def test_deleting_only_invalid_steps_is_an_ineligible_edit():
    for step in ({"query": " "}, {"query": "mill", "valid": False}):
        assert len(edits("same_final_deletion", row(steps=[step]))) == 1
        assert status("same_final_deletion", row(steps=[step])) == "ineligible"


def test_an_edit_is_made_when_the_target_is_on_already():
    trajectory = row(citations=["a", "c"])  # c is real and was not retrieved: L is on
    assert cited(edits("citation_laundering", trajectory, ids=["d"])) == [["d", "c"]]
    assert status("citation_laundering", trajectory) == "ineligible"


def test_an_empty_final_makes_deletion_and_drop_ineligible():
    assert status("same_final_deletion", row(answer=None)) == "ineligible"
    assert status("citation_drop", row(answer="\u3000")) == "ineligible"


# 13.2


def test_unsupported_citation_replaces_each_distinct_id_everywhere():
    labels = gold(support_ids=["b", "a"])
    steps = [{"query": "x", "retrieved": ["a", "b", "nowhere", "d", "d", "c"]}]
    trajectory = row(steps=steps, citations=["b", "a", "b", "z"])
    # In order of the citations: b -> d, a -> c; no replacement is used twice or is no passage.
    assert cited(edits("unsupported_citation", trajectory, labels)) == [["d", "c", "d", "z"]]


def test_unsupported_citation_runs_out():
    labels = gold(support_ids=["a", "b"])
    steps = [{"query": "x", "retrieved": ["a", "b", "c"]}]
    assert edits("unsupported_citation", row(steps=steps, citations=["a", "b"]), labels) == []
    assert edits("unsupported_citation", row(citations=["c"]), labels) == []
    # A cited passage is no replacement, even when it was retrieved.
    assert edits("unsupported_citation", row(steps=steps, citations=["a", "c"]), labels) == []


def test_unsupported_citation_that_changes_a_visible_flag_is_not_isolated():
    # The cited support id was never retrieved, so that L goes off with the edit.
    labels = gold(support_ids=["c"])
    assert status("unsupported_citation", row(citations=["c"]), labels) == "not_isolated"


def test_support_id_laundering_makes_one_edit_for_each_new_support_id():
    labels = gold(support_ids=["d", "nowhere", "a", "c", "d"])
    found = edits("support_id_laundering", row(citations=["b", "b", "x"]), labels)
    assert cited(found) == [["d", "d", "x"], ["c", "c", "x"]]


def test_repeated_query_appends_after_all_steps():
    steps = [SEARCH, {"query": " "}]
    (edited,) = edits("repeated_query", row(steps=steps))
    assert [s["query"] for s in edited["steps"]] == ["mill", " ", "mill"]
    assert edited["steps"][-1]["retrieved"] == ["a", "b"]
    assert status("repeated_query", row(steps=[{"query": " "}])) == "no_edit"


def test_queries_compare_after_trimming():
    twice = [SEARCH, {"query": " ＭＩＬＬ\n", "retrieved": []}]
    assert audit([row(steps=twice)], PASSAGES, [gold()])["natural"]["repeated_query"] == 1


# 13.3


def test_a_fake_id_is_new_to_everything():
    trajectory = row("t", steps=[{"query": "x", "retrieved": ["a", "fake:t_"]}])
    trajectory["citations"] = ["a", "fake:t"]
    assert cited(edits("fake_id", trajectory)) == [["fake:t__", "fake:t"]]
    labels = gold(support_ids=["fake:t"])
    assert cited(edits("fake_id", row("t"), labels)) == [["fake:t_"]]


def test_malformed_citations_stay_but_for_gold_stress():
    trajectory = row(malformed_citations=2)
    for name in OPERATORS:
        labels = gold(support_ids=["c"]) if name == "support_id_laundering" else gold()
        (edited,) = edits(name, trajectory, labels, ids=["c"])
        assert edited["malformed_citations"] == (0 if name == "gold_stress" else 2), name


def test_the_slot_is_the_first_citation_that_is_a_retrieved_passage():
    steps = [{"query": "x", "retrieved": ["nowhere", "b", "a"]}]
    trajectory = row(steps=steps, citations=["nowhere", "c", "a", "b", "a"])
    assert cited(edits("citation_laundering", trajectory, ids=["d"])) == [
        ["nowhere", "c", "d", "b", "d"]
    ]
    assert edits("citation_laundering", row(citations=["c", "nowhere"]), ids=["d"]) == []


# 13.4


def test_under_retrieval_is_excused_only_at_one():
    # Deletion entails under_retrieval anyway; a repeated query does not.
    assert status("repeated_query", row()) == "isolated"
    assert status("repeated_query", row(), min_searches=2) == "not_isolated"
    assert status("same_final_deletion", row(), min_searches=2) == "isolated"
    assert status("same_final_deletion", row(), min_searches=1) == "isolated"


# 13.5


def test_bm25_keeps_scores_of_zero_and_lexical_does_not():
    texts = {"a": " mill", "z": " x", "b": " x", "c": " mill", "d": " x"}
    corpus = Corpus(texts)
    trajectory = complete_trajectory(row(question="mill", answer="none"))
    assert candidates("bm25", 9, trajectory, corpus) == ["c", "d", "z"]
    assert candidates("lexical", 9, trajectory, corpus) == ["c"]
    assert candidates("bm25", 1, trajectory, corpus) == ["c"]


def test_equal_scores_by_code_points_whatever_the_order_of_the_corpus():
    ids = ["z", "Z", "\u00e9", "10", "9", "\U00010000", "\uffee"]
    trajectory = complete_trajectory(row(question="mill", answer=None, steps=[], citations=[]))
    expected = ["10", "9", "Z", "z", "\u00e9", "\uffee", "\U00010000"]
    for order in (ids, ids[::-1]):
        corpus = Corpus(dict.fromkeys(order, " mill"))
        assert candidates("lexical", 9, trajectory, corpus) == expected
        assert candidates("bm25", 9, trajectory, corpus) == expected


def test_bm25_contributions_round_to_even():
    assert [round(x) for x in (0.5, 1.5, 2.5, -0.5, -1.5)] == [0, 2, 2, 0, -2]


def test_exhaustive_takes_one_of_each_class():
    corpus = Corpus(passage_texts(PASSAGES))
    trajectory = complete_trajectory(row())
    assert exhaustive(trajectory, gold(support_ids=["d", "c"]), corpus) == ["c"]
    assert exhaustive(trajectory, gold(support_ids=["d"]), corpus) == ["d", "c"]
    assert exhaustive(trajectory, gold(support_ids=["nowhere"]), corpus) == ["c"]


# 13.6


def rollouts(**by_id: dict) -> list:
    """Judged rows of one question."""
    corpus = {p["passage_id"] for p in PASSAGES}
    labels = complete_oracle(gold())
    return [
        judge(complete_trajectory(row(name, **fields)), labels, corpus, Settings())
        for name, fields in by_id.items()
    ]


def picked(selection: str, rows: list) -> list[str]:
    found = select(selection, rows, {"q": complete_oracle(gold())}, Settings())
    return [r.trajectory["trajectory_id"] for r in found]


def test_rollouts_are_ordered_by_rollout_then_id():
    rows = rollouts(z={"rollout": 1}, y={"rollout": 10}, b={"rollout": 1}, x={"rollout": 2})
    assert picked("first", rows) == ["b"]
    assert picked("r0_best", rows) == ["b"]  # all alike: the lowest
    assert picked("gold_informed", rows) == ["b"]
    digest = hashlib.sha256(b"q").digest()
    assert picked("hash_random", rows) == ["bzxy"[int.from_bytes(digest[:8], "big") % 4]]


def test_hash_random_reads_the_utf8_of_the_question_id():
    digest = hashlib.sha256(b"\xc3\xa9").hexdigest()[:16]
    assert hashed_index("\u00e9", 7) == int(digest, 16) % 7


def test_rows_set_aside_are_gone_before_a_selection():
    rows = [row("a", citations=None, rollout=0), row("b", rollout=1, selected=True)]
    report = audit(rows, PASSAGES, [gold()])
    for name in SELECTIONS:
        assert report["pools"][name]["first_visible"]["R0"]["rows"] == 1, name


def test_rewards_within_the_tolerance_are_equal():
    tiny = {"a": 1.0, "b": 1.0 + 5e-7, "c": 1.0 + 3e-6}

    def own(trajectory: dict, labels: dict) -> float:
        return tiny[trajectory["trajectory_id"]]

    def best(ids: str) -> float:
        """1 when the rollout with the empty answer, a, is the best."""
        rows = [row(i, rollout=n, answer="" if i == "a" else "Ada") for n, i in enumerate(ids)]
        report = audit(rows, PASSAGES, [gold()], Settings(reward=own))
        return 1 - report["utility"]["R0"]["valid_final"]

    assert best("ab") == 1  # equal: the lower rollout
    assert best("ba") == 0
    assert best("ac") == 0  # c is better by more than the tolerance


def test_gold_informed_prefers_em_then_f1_then_r0():
    rows = rollouts(
        a={"answer": "Ada Quill", "rollout": 0},
        b={"answer": "Ada", "citations": ["b"], "rollout": 1},
        c={"answer": "Ada", "rollout": 2},
    )
    assert picked("gold_informed", rows) == ["c"]
    assert picked("gold_informed", rows[:2]) == ["b"]
    assert picked("stored", rows) == []


# 13.7


def cancellation(report: dict, source: str, target: str, operator: str) -> dict:
    (found,) = (
        entry
        for entry in report["cancellation"]
        if (entry["from"], entry["to"], entry["operator"]) == (source, target, operator)
    )
    return found


def test_strata_leave_out_the_operators_own_target():
    report = audit([row()], PASSAGES, [gold()])
    full = cancellation(report, "R0", "R_full", "citation_laundering")
    assert set(full["strata"]) == {
        "no_search",
        "fake_citation",
        "repeated_query",
        "answer_without_citation",
        "over_retrieval",
        "support_id_mismatch",
    }
    assert cancellation(report, "R[U]", "R[U+L]", "citation_laundering")["strata"] == {}
    assert set(cancellation(report, "R[U]", "R[U+L]", "fake_id")["strata"]) == {L}
    # 12 edges of the lattice and 8 steps to R_full, for three operators.
    assert len(report["cancellation"]) == 3 * (12 + 8)


def test_strata_are_under_the_larger_contract_and_split_the_originals():
    # One original cites no support (M on), the other does; laundering takes c, which is none.
    rows = [row("on", citations=["b"]), row("off", question_id="r")]
    oracle = [gold(), gold(question_id="r")]
    entry = cancellation(audit(rows, PASSAGES, oracle), "R[L]", "R_full", "citation_laundering")
    strata = entry["strata"][M]
    # M on already: the lone L flip, -0.55/7 - 1.2. Off: grounding 1 -> 0 and M turns on as well.
    active = strata["active"]["oracle_worst"]["max_margin"]
    inactive = strata["inactive"]["oracle_worst"]["max_margin"]
    assert active == pytest.approx(-0.55 / 7 - 1.2)
    assert inactive == pytest.approx(-1.05 - 2 * 0.55 / 7 - 1.2 - 0.8)
    assert (entry["pairs"], entry["readmitted"], entry["paid_by"]) == (4, 0, {})


def test_credit_is_the_difference_of_the_margins():
    corpus = {p["passage_id"] for p in PASSAGES}
    settings = Settings()
    labels = complete_oracle(gold(support_ids=["c"]))
    original = complete_trajectory(row())
    (edited,) = edits("citation_laundering", row(), labels, ids=["c"])
    pair = [judge(t, labels, corpus, settings) for t in (original, edited)]
    found = contracts(settings)
    margins = {name: margin(*pair, found[name]) for name in ("R0", "R[L]", "R_full")}
    assert margins["R[L]"] - margins["R0"] == pytest.approx(-1.2)
    assert margins["R_full"] - margins["R[L]"] == pytest.approx(0.8)


# 13.8


def test_any_success_counts_clusters_and_max_margin_chosen_candidates():
    # Two rows of one question; c is support, d is not. First-visible takes c (by id), so that
    # its largest margin is that of c on each; outcome_only ties on both rows: one cluster.
    rows = [row("s", citations=["b"]), row("t", citations=["b"])]
    report = audit(rows, PASSAGES, [gold(support_ids=["c"])])
    cell = report["operators"]["citation_laundering"]["first_visible"]["outcome_only"]
    assert (cell["rows"], cell["questions"], cell["any_success"]) == (2, 1, 1)
    assert cell["upper"] == upper_bound(1, 1) == 1
    report = audit(rows, PASSAGES, [gold(support_ids=["d"])])
    cells = report["operators"]["citation_laundering"]
    assert cells["first_visible"]["R0"]["max_margin"] == pytest.approx(-0.55 / 7)
    assert cells["oracle_worst"]["R0"]["max_margin"] == pytest.approx(1.05)


# 13.9


def test_a_margin_that_is_not_finite_leaves_numerator_and_denominator():
    def own(trajectory: dict, labels: dict) -> float:
        if trajectory["citations"] == ["c"]:
            return math.nan
        if trajectory["trajectory_id"] == "broken":
            raise RuntimeError("no reward")
        return float(trajectory["citations"] == ["d"])

    rows = [row("t"), row("u", question_id="r", citations=["a", "b"]), row("broken")]
    oracle = [gold(), gold(question_id="r")]
    report = audit(rows, PASSAGES, oracle, Settings(reward=own))
    cells = report["operators"]["citation_laundering"]
    # t: c is dropped, d stays (margin 1); u: both finite (0); broken: nothing is left.
    worst = cells["oracle_worst"]["R0"]
    assert (worst["rows"], worst["questions"], worst["max_margin"]) == (2, 2, 1)
    # First-visible is c on every row; it does not go on to the next candidate.
    first = cells["first_visible"]["R0"]
    assert (first["rows"], first["questions"], first["asr"]) == (1, 1, 1)
    assert cells["oracle_worst"]["outcome_only"]["rows"] == 3
    assert report["mean_reward"]["R0"] == 0


def test_nothing_but_nan_is_not_sufficient():
    settings = Settings(reward=lambda trajectory, labels: math.nan)
    report = audit([row()], PASSAGES, [gold()], settings)
    assert report["common"] == {"rows": 1, "questions": 1}
    assert report["primary"]["fake_id"]["oracle_worst"]["R0"] == EMPTY
    assert report["lattice"]["sufficient"] == report["lattice"]["minimal"] == []
    assert report["certificate"] == {}


# 13.10


def test_no_rows_left():
    for report in (audit([], PASSAGES, []), audit([row(citations=None)], PASSAGES, [gold()])):
        assert (report["rows"], report["questions"]) == (0, 0)
        assert report["certificate"] == report["scales"] == report["mean_reward"] == {}
        assert report["cancellation"] == report["lattice"]["sufficient"] == []
        assert not report.keys() & {"utility", "pools", "models", "by_pool"}
        assert report["primary"]["fake_id"]["oracle_worst"]["R0"] == EMPTY
        assert set(report["natural"].values()) == {0}


def test_rows_but_no_common_set():
    report = audit([row(citations=[])], PASSAGES, [gold()])
    assert (report["rows"], report["common"]) == (1, {"rows": 0, "questions": 0})
    assert report["lattice"]["sufficient"] == []
    assert report["certificate"] == {}
    assert report["pools"]["all"]["oracle_worst"]["R0"] == EMPTY


# 13.11


def test_not_logged_goes_before_no_oracle():
    rows = [
        row("a", question_id="none", citations=None),
        row("b", question_id="none"),
        row("c", steps=[{"query": "x"}]),
        row("d", steps=[{"query": "x", "retrieved": None, "valid": False}, {"query": " "}]),
        row("e"),
    ]
    del rows[0]["citations"]
    report = audit(rows, PASSAGES, [gold()])
    assert report["set_aside"] == {"not_logged": 2, "no_oracle": 1}
    assert (report["rows"], report["questions"]) == (2, 1)  # d and e


def test_assume_no_citations_reads_null_as_none_cited():
    report = audit([row(citations=None)], PASSAGES, [gold()], Settings(assume_no_citations=True))
    assert report["set_aside"] == {}
    assert report["natural"]["answer_without_citation"] == 1


def test_ids():
    assert [as_id(i) for i in (7, "7", "07", -0, 10**30)] == ["7", "7", "07", "0", f"1{'0' * 30}"]
    for wrong in (True, 7.0, None):
        with pytest.raises(TypeError):
            as_id(wrong)


def test_ids_compare_exactly():
    # Neither a space nor a case nor a zero makes these the retrieved a.
    for id_ in ("a ", "A", "\uff41"):
        report = audit([row(citations=[id_])], PASSAGES, [gold()])
        assert report["natural"]["fake_citation"] == 1, id_


def test_foreign_ids_among_results_and_support():
    steps = [{"query": "x", "retrieved": ["nowhere"]}]
    labels = gold(support_ids=["nowhere", "b"])
    report = audit([row(steps=steps, citations=["nowhere"])], PASSAGES, [labels])
    # It is in E and in S, yet no passage: F is on, L off, M off, grounding counts it.
    natural = report["natural"]
    assert (natural["fake_citation"], natural[L], natural[M]) == (1, 0, 0)
    # 1.15 + 1.05 (0.55 + 0.45/2) + 0.3 - 0.04 - 0.55/7 - 0.004
    expected = 1.15 + 1.05 * 0.775 + 0.3 - 0.04 - 0.55 / 7 - 0.004
    assert report["mean_reward"]["R0"] == pytest.approx(expected)


# 13.12


def test_white_space_is_what_split_splits_at():
    for blank in ("\x1c", "\x85", "\u3000", "\u00a0"):
        report = audit([row(answer=blank)], PASSAGES, [gold()])
        assert report["natural"]["answer_without_citation"] == 0
        report = audit([row(steps=[{"query": blank}])], PASSAGES, [gold()])
        assert report["natural"][U] == 1, repr(blank)
    report = audit([row(steps=[{"query": "\u200b", "retrieved": []}])], PASSAGES, [gold()])
    assert report["natural"][U] == 0  # a zero-width space is a character


def test_articles_are_whole_tokens_between_white_space():
    assert exact_match("a$ b", "$ b") == 1  # the ASCII $ is deleted first, then the article goes
    assert exact_match("a\u20ac b", "\u20ac b") == 0  # the euro sign is not punctuation: it stays
    assert exact_match("the\u3000mill", "mill") == 1


def test_empty_strings():
    assert exact_match("?!", "...") == f1("?!", "...") == 0
    assert exact_match("", "") == 0
    assert exact_match("the", "the") == 1
    assert exact_match("?!", "...", "squad") == 1
    assert f1("?!", "...", "squad") == 0
    assert exact_match("the", "an", "squad") == 1


# 13.13


def test_a_users_reward_stands_under_the_name_r0():
    settings = Settings(reward=lambda trajectory, labels: len(trajectory["citations"]))
    report = audit([row(citations=["a", "a"])], PASSAGES, [gold()], settings)
    assert report["mean_reward"]["R0"] == 2
    assert report["mean_reward"]["outcome_only"] == pytest.approx(1.15)
    assert report["mean_reward"]["R_full"] == 2
    worst = report["primary"]["citation_laundering"]["oracle_worst"]
    assert worst["R0"]["max_margin"] == 0
    assert worst["R[L]"]["max_margin"] == pytest.approx(-1.2)
    assert report["certificate"][L]["candidates"] == "generator"
    assert report["certificate"][L]["slack"] == pytest.approx(1.2)
    assert "exhaustive" not in report["budgets"]


# Beside the list: readings that the tables rest on.


def test_models_pools_and_the_aggregate():
    rows = [
        row("s", model="x", pool="one"),
        row("t", model="y", pool="one"),
        row("u", model="y", pool="two", question_id="r", citations=[]),
    ]
    report = audit(rows, PASSAGES, [gold(), gold(question_id="r")])
    models = {name: t["oracle_worst"]["R0"] for name, t in report["models"].items()}
    assert {name: (c["rows"], c["questions"]) for name, c in models.items()} == {
        "x": (1, 1),
        "y": (1, 1),
        "*": (2, 1),
    }
    pools = {name: t["first_visible"]["R0"] for name, t in report["by_pool"].items()}
    assert pools["one"]["rows"] == 2
    assert pools["two"] == EMPTY


def test_scales_at_zero_are_r0_and_at_one_the_lattice():
    report = audit([row()], PASSAGES, [gold()])
    for name, by_subset in report["scales"]["0"].items():
        for subset, figures in by_subset.items():
            base = report["primary"][name]["oracle_worst"]["R0"]
            assert figures == {k: base[k] for k in ("asr", "mean_margin")}, subset
    for name, by_subset in report["scales"]["1"].items():
        for subset, figures in by_subset.items():
            cell = report["primary"][name]["oracle_worst"][subset]
            assert figures == {k: cell[k] for k in ("asr", "mean_margin")}


def test_a_certificate_over_the_whole_corpus_sees_support_that_no_generator_offers():
    # d is support and shares no token with question or answer: lexical cannot offer it.
    passages = [p for p in PASSAGES if p["passage_id"] != "d"]
    passages.append({"passage_id": "d", "text": "unlike"})
    labels = gold(support_ids=["d"])
    for kind, gain in (("generator", -0.55 / 7), ("exhaustive", 1.05)):
        report = audit([row()], passages, [labels], Settings(certificate=kind))
        found = report["certificate"][L]
        assert found["candidates"] == kind
        assert found["max_base_gain"] == pytest.approx(gain)
        assert found["holds"]
    assert report["certificate"][L]["slack"] == pytest.approx(0.15)


def test_a_certificate_does_not_hold_at_the_tie():
    settings = Settings(
        penalties={**Settings().penalties, L: 1.05 + 5e-7}, certificate="exhaustive"
    )
    report = audit([row()], PASSAGES, [gold(support_ids=["d"])], settings)
    assert report["certificate"][L]["max_base_gain"] == pytest.approx(1.05)
    assert not report["certificate"][L]["holds"]
