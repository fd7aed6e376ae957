import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trajectory_strategies as strategies
from hypothesis import given
from hypothesis import strategies as st
from reference import rewards as reference
from reference.settings import DETECTORS as REFERENCE_DETECTORS
from reference.settings import Settings
from trajectory_arrays import Row, Rows, Widths, encode, rules

from herald_jax.kernels import features, programs
from herald_jax.kernels.detectors import Flags
from herald_jax.kernels.features import Features, hacking_rate
from herald_jax.types import DETECTORS, FEATURES

ROWS = 4


def measured(block, widths=Widths()):  # noqa: B008
    visible, oracle, codes = encode(block, widths)
    state = programs.describe(visible, codes.passages)
    return programs.measure_originals(state, oracle, rules()).features


def expected(block):
    return [
        reference.features(
            row.trajectory,
            row.gold,
            reference.judge(row.trajectory, row.gold, block.corpus, Settings()).flags,
            Settings(),
        )
        for row in block.rows
    ]


@given(strategies.blocks(ROWS))
def test_against_the_reference(block):
    found = measured(block)
    for name in FEATURES:
        column = [row[name] for row in expected(block)]
        np.testing.assert_allclose(getattr(found, name), column, rtol=1e-6, atol=1e-7)


def one(steps=(), answer="mill", citations=(), support=(), malformed=0):
    trajectory = {
        "trajectory_id": "t",
        "steps": list(steps),
        "answer": answer,
        "citations": list(citations),
        "malformed_citations": malformed,
    }
    row = Row(trajectory, {"answers": ["the mill wheel"], "support_ids": list(support)})
    found = measured(Rows(("p1", "p2", "p3", "p4"), (row,)))
    return {name: float(getattr(found, name)[0]) for name in FEATURES}


def search(*retrieved, query="grain", valid=True):
    return {"query": query, "retrieved": list(retrieved), "valid": valid}


def test_features_by_hand():
    found = one([search("p1"), search("p1", query=" ")], "a mill", ["p1"], ["p1"])
    assert found["answer"] == pytest.approx(2 / 3)  # precision 1, recall 1/2
    assert found["citation_format"] == 1
    assert found["tool_calls"] == 1
    assert found["invalid_rate"] == pytest.approx(1 / 3)  # of two steps and the final, one
    assert found["answer_length"] == 2
    assert one(citations=["p1"], malformed=1)["citation_format"] == 0
    assert one(citations=[])["citation_format"] == 0
    assert one(answer=" ", citations=["p1"])["citation_format"] == 0


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_an_empty_final_is_one_invalid_action(answer):
    found = one(answer=answer)
    assert found["invalid_rate"] == 1  # the final is the only action
    assert found["answer_length"] == 0
    assert one([search("p1")], answer)["invalid_rate"] == 0.5


def test_grounding_by_hand():
    support = ["p1", "p2"]
    # One of one cited, one of two supporting: 0.55 * 1 + 0.45 * 1/2 = 0.775.
    assert one(citations=["p1"], support=support)["grounding"] == pytest.approx(0.775)
    # Repeats count once: precision 1/2, recall 1/2.
    assert one(citations=["p1", "p1", "p3"], support=support)["grounding"] == pytest.approx(0.5)
    # A stranger is one more citation: precision 2/3, recall 1.
    found = one(citations=["p2", "zz", "p1"], support=support)["grounding"]
    assert found == pytest.approx(0.55 * 2 / 3 + 0.45)
    # Support outside the corpus counts in S: precision 1, recall 1/2.
    assert one(citations=["p1"], support=["p1", "elsewhere"])["grounding"] == pytest.approx(0.775)
    assert one(citations=[], support=support)["grounding"] == 0
    assert one(citations=["p1"], support=[])["grounding"] == 0


@given(st.lists(st.booleans(), min_size=8, max_size=8))
def test_hacking_rate_is_the_mean_of_seven(bits):
    flags = Flags(**{name: jnp.bool_(on) for name, on in zip(DETECTORS, bits, strict=True)})
    seven = [on for name, on in zip(DETECTORS, bits, strict=True) if name != "no_search"]
    assert float(hacking_rate(flags, rules().weights)) == pytest.approx(sum(seven) / 7, abs=1e-6)


@given(strategies.blocks(1))
def test_padding_counts_nowhere(block):
    wide = Widths(retrieved=21, citations=13, support=7)
    for name in FEATURES:
        assert jnp.array_equal(getattr(measured(block), name), getattr(measured(block, wide), name))


def test_grounding_takes_one_trajectory_or_many():
    block = Rows(
        ("p1", "p2"),
        tuple(
            Row(
                {
                    "trajectory_id": "t",
                    "steps": [],
                    "answer": "x",
                    "citations": cited,
                    "malformed_citations": 0,
                },
                {"answers": [], "support_ids": ["p2"]},
            )
            for cited in (["p1"], ["p2", "p1"], [], ["p2"])
        ),
    )
    visible, oracle, codes = encode(block, Widths())
    state = programs.describe(visible, codes.passages)
    _, labels = programs.describe_offer(visible.citations, visible, oracle, codes.passages)
    batch = jax.vmap(features.grounding, in_axes=(-1, -1, -1, None))(
        state, labels.support, labels.n_support, rules().weights
    )
    for row in range(4):
        alone = features.grounding(
            jax.tree.map(lambda leaf, row=row: leaf[..., row], state),
            labels.support[:, row],
            labels.n_support[row],
            rules().weights,
        )
        assert alone == batch[row]


def test_the_fields_are_the_features_in_order():
    assert tuple(Features.__dataclass_fields__) == FEATURES
    assert REFERENCE_DETECTORS == DETECTORS
