"""Transcripts for the page of a run: which rollouts to show, and who wrote which of their words.

Text is decoded from the logged token ids, and cut where the logged spans say: nothing is encoded or
parsed again.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, cast

import msgspec
from numpy.typing import NDArray

from herald_jax.data.records import Step
from herald_jax.pages.transcripts import Author, Kind, Mark, Said, Sample, Transcript
from herald_jax.train.spans import AUTHORS, KINDS, PLAIN, POLICY, QUERY, Span
from herald_jax.train.tokens import Tokeniser

Row = Mapping[str, Any]
GROUPS = 3  # of an update that are shown
_SAME = 1e-6  # rewards no further apart give no signal (SPEC section 10)


def samples_of(path: Path, tokeniser: Tokeniser) -> list[Sample]:
    """The samples of one update's rollouts.

    Args:
        path: of its file in the log of a run.
        tokeniser: the policy's.
    """
    rows = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    return [_sample(group, tokeniser) for group in chosen(groups_of(rows), GROUPS)]


def groups_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Rollouts of one question, which stand side by side."""
    return [list(group) for _, group in groupby(rows, key=lambda row: row["question_id"])]


def spread(group: Sequence[Row]) -> float:
    """Highest less lowest reward; below 0 where no rollout has one."""
    known = _known(group)
    return max(known) - min(known) if known else -1.0


def chosen(groups: Sequence[list[Row]], wanted: int) -> list[list[Row]]:
    """Groups from the one whose rewards differ most to the one whose differ least, evenly.

    Of groups that differ alike the first comes first.
    """
    order = sorted(groups, key=spread, reverse=True)
    if len(order) <= wanted:
        return order
    return [order[round(at * (len(order) - 1) / (wanted - 1))] for at in range(wanted)]


def _known(group: Sequence[Row]) -> list[float]:
    return [paid(row) for row in group if row["reward"] is not None]


def paid(row: Row) -> float:
    """What a rollout was paid in all."""
    return float(row["reward"]) + float(row["bonus"])


def _reward(row: Row) -> float | None:
    return None if row["reward"] is None else paid(row)


def _sample(group: Sequence[Row], tokeniser: Tokeniser) -> Sample:
    known = [row for row in group if row["reward"] is not None]
    size = len(group)
    if not known:
        shown = [(f"One of {size}, none of which has a reward", group[0])]
    elif spread(group) <= _SAME:
        shown = [(f"One of {len(known)}, all paid alike", known[0])]
    else:
        shown = [
            (f"Best of {size}", max(known, key=paid)),
            (f"Worst of {size}", min(known, key=paid)),
        ]
    return Sample(
        update=int(group[0]["update"]),
        question=str(group[0]["question"]),
        rewards=tuple(_reward(row) for row in group),
        shown=tuple(_transcript(name, row, tokeniser) for name, row in shown),
    )


def _transcript(name: str, row: Row, tokeniser: Tokeniser) -> Transcript:
    return Transcript(
        name=name,
        reward=_reward(row),
        terms=row["terms"],
        bonus=row["bonus"],
        advantage=row["advantage"],
        em=row["em"],
        f1=row["f1"],
        stop=str(row["stop"]),
        action_tokens=int(row["generated_tokens"]),
        said=tuple(said(row, tokeniser)),
    )


def said(row: Row, tokeniser: Tokeniser) -> Iterator[Said]:
    """The conversation, author by author.

    Args:
        row: a line of the log.
        tokeniser: the policy's.
    """
    spans = [Span(*span) for span in row["spans"]]
    steps = msgspec.convert(row["steps"], list[Step])
    text, ends = tokeniser.places(row["tokens"])
    turn = searches = 0
    for whole in sorted((s for s in spans if s.kind == PLAIN), key=lambda s: s.first):
        author: Author = AUTHORS[whole.author]
        if whole.author != POLICY:
            yield Said(author, (Mark(text[ends[whole.first] : ends[whole.last]]),))
            continue
        inner = [s for s in spans if s.kind != PLAIN and whole.first <= s.first < whole.last]
        credit = 0.0
        # The answer is no step, and neither is a turn that was cut off.
        if turn < len(steps) and steps[turn].executed:
            credit = float(row["credit"][searches])
            searches += 1
        turn += 1
        yield Said(author, tuple(_marks(whole, inner, text, ends, credit)), turn)


def _marks(
    whole: Span, inner: Sequence[Span], text: str, ends: NDArray[Any], credit: float
) -> Iterator[Mark]:
    """A turn cut wherever a span begins or ends."""
    cuts = {whole.first, whole.last, *(at for span in inner for at in (span.first, span.last))}
    places = sorted(cuts)
    query = next((span for span in inner if span.kind == QUERY), None)
    for first, last in pairwise(places):
        over = [span for span in inner if span.first <= first and last <= span.last]
        over.sort(key=lambda span: span.first - span.last)
        ended = query is not None and last == query.last
        yield Mark(
            text[ends[first] : ends[last]],
            tuple(cast(Kind, KINDS[span.kind]) for span in over),
            credit if ended else 0.0,
        )
