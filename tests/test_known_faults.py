"""Every known fault of ../shared/cases, put to the functions that it concerns.

The kind of a case is its file's name without the last part. A kind that stands in neither table
below fails: somebody has to say what it means for this project.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from known_faults import (
    arrays,
    credit,
    grouping,
    imports,
    losses,
    metrics,
    retrieval,
    statistics,
    tokens,
    training_checkpoints,
)
from known_faults.cases import FOLDER, Case, files, kind_of, load

Check = Callable[[Case, Path], None]

CHECKS: dict[str, tuple[Check, ...]] = {
    "jsonl-framing": (imports.jsonl_framing,),
    "id-width": (imports.id_width,),
    "null-vs-empty": (imports.null_vs_empty, imports.null_vs_empty_in_an_audit),
    "detectors": (imports.detectors, imports.detectors_of_arrays, imports.detectors_in_an_audit),
    "answer-metrics": (metrics.answer_metrics,),
    "unicode-normalisation": (metrics.unicode_normalisation,),
    "support-joint": (metrics.support_joint,),
    "padded-gather": (
        arrays.padding_is_no_citation,
        arrays.padding_fires_no_detector,
        arrays.padding_is_no_group,
        arrays.padding_gets_no_gradient,
    ),
    "shape-buckets": (arrays.shape_buckets,),
    "accumulation": (arrays.sums_in_any_order, arrays.counts_and_means_of_a_stream),
    "bm25": (retrieval.bm25_order, retrieval.bm25_scores, retrieval.bm25_of_degenerate_corpora),
    "ranking-ties-nan": (retrieval.lexical_ties, retrieval.signed_zeros),
    "bootstrap-cluster": (
        statistics.bootstrap_of_clusters,
        statistics.bootstrap_in_a_report,
        statistics.bootstrap_without_spread_or_of_one_cluster,
    ),
    "exact-inference": (statistics.exact_bounds, statistics.successes_and_what_is_not_finite),
    "grpo-grouping": (grouping.advantages_in_any_order,),
    "grpo-zero-spread": (grouping.groups_without_spread,),
    "grpo-missing-reward": (grouping.members_without_a_reward, grouping.malformed_returns),
    "masked-loss": (losses.masked_tokens_and_means,),
    "clip-and-kl": (losses.clips_and_kl,),
    "tool-credit": (credit.step_advantages, credit.credit_of_searches),
    "token-alignment": (tokens.masks_and_authors,),
    "checkpoint-resume": (training_checkpoints.resumed_steps,),
}

NOT_CONCERNED = {
    # The trainer reads single turns of a form of its own: tests/train/test_chat.py.
    "answer-extraction": "an audit reads answers as fields; no transcript of others is parsed yet",
    "authorship": "an audit reads steps as fields; no transcript of others is parsed yet",
    "citation-syntax": "an audit reads citations as ids; no markers of others are parsed yet",
    "noninferiority-gate": "no two policies are compared yet",
}


def cases() -> list[object]:
    """One parameter for each file and check, with the reason where there is none to run."""
    found = [
        pytest.param(path, check, id=f"{path.stem}-{check.__name__}")
        for path in files()
        for check in CHECKS.get(kind_of(path), ())
    ]
    return found or [pytest.param(None, None, id="none")]


@pytest.mark.parametrize(("path", "check"), cases())
def test_a_known_fault_is_not_made_here(path, check, tmp_path):
    if path is None:
        pytest.skip(f"no cases in {FOLDER}: they are not part of this project")
    check(load(path), tmp_path)


def test_every_kind_is_checked_or_said_not_to_concern_the_project():
    if not files():
        pytest.skip(f"no cases in {FOLDER}: they are not part of this project")
    kinds = {kind_of(path) for path in files()}
    assert sorted(kinds - CHECKS.keys() - NOT_CONCERNED.keys()) == []
    assert sorted(CHECKS.keys() & NOT_CONCERNED.keys()) == []
