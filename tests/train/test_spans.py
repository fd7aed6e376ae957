"""Authors of tokens: masks from spans and lengths, and refusals where these do not fit."""

import pytest

from herald_jax.train.spans import (
    ANSWER,
    PLAIN,
    POLICY,
    PROMPT,
    TOOL,
    MisalignedError,
    Span,
    author_mask,
    check_aligned,
)

WHOLE = [
    Span(PROMPT, PLAIN, 0, 2),
    Span(POLICY, PLAIN, 2, 5),
    Span(TOOL, PLAIN, 5, 7),
    Span(POLICY, PLAIN, 7, 8),
]


def changed(at, *span):
    return [*WHOLE[:at], Span(*span), *WHOLE[at + 1 :]]


def test_masks_are_of_authors():
    assert author_mask(WHOLE, POLICY, 8).tolist() == [False] * 2 + [True] * 3 + [False] * 2 + [True]
    assert author_mask(WHOLE, TOOL, 8).nonzero()[0].tolist() == [5, 6]
    check_aligned("r", WHOLE, 8, 4)


def test_a_kind_within_a_turn_is_no_second_author():
    inside = [*WHOLE, Span(POLICY, ANSWER, 3, 5)]
    check_aligned("r", inside, 8, 4)
    assert author_mask(inside, POLICY, 8).tolist() == author_mask(WHOLE, POLICY, 8).tolist()


def test_an_empty_span_owns_nothing():
    check_aligned("r", [*WHOLE, Span(TOOL, PLAIN, 4, 4)], 8, 4)


@pytest.mark.parametrize(
    ("spans", "length", "logps", "said"),
    [
        (changed(2, TOOL, PLAIN, 4, 7), 8, 4, "rollout 7: token 4: expected one author, got 2"),
        (changed(2, TOOL, PLAIN, 6, 7), 8, 4, "rollout 7: token 5: expected one author, got 0"),
        (WHOLE[:3], 8, 3, "rollout 7: token 7: expected one author, got 0"),
        ([], 1, 0, "rollout 7: token 0: expected one author, got 0"),
        (changed(3, POLICY, PLAIN, 7, 9), 8, 5, "span policy 7:9: .* within 8 tokens"),
        (changed(0, PROMPT, PLAIN, -1, 2), 8, 4, "span prompt -1:2: .* within 8 tokens"),
        (changed(2, TOOL, PLAIN, 7, 5), 8, 4, "span tool 7:5: "),
        (WHOLE, 8, 3, "rollout 7: expected one log-probability for each of its 4 tokens, got 3"),
        (WHOLE, 8, 5, "rollout 7: expected one log-probability for each of its 4 tokens, got 5"),
    ],
)
def test_what_does_not_line_up_is_refused_by_name(spans, length, logps, said):
    with pytest.raises(MisalignedError, match=said):
        check_aligned("rollout 7", spans, length, logps)
