"""Exact match and F1 of a million pairs against the plain definition, to the bit.

Answers are phrases of one to twenty words, some of them a gold answer, alone or in a sentence, some
with letters beyond ASCII; questions have one or two golds. The plain way is that of
`tests/reference`, pair by pair, on a sample whose time is scaled; every score of the sample is
compared. It is also timed with each distinct string normalised once, which is as far as plain
Python goes.

  python benchmarks/metrics.py --quick
  python benchmarks/metrics.py --out benchmarks/results/metrics.json
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import rollouts
from machine import machine
from measured import Row, arguments, finish, lowest, medians, turns

from herald_jax.data.metrics import answer_metrics
from herald_jax.data.text import normalise

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reference import metrics as reference

PAIRS = 1_000_000
GOAL = 3.5


def pairs(n: int, seed: int = 0) -> tuple[list[str | None], list[list[str]]]:
    """`n` answers and the golds of each; eight answers a question, half of them distinct."""
    golds = rollouts.oracle(n // rollouts.ROLLOUTS, seed)
    answers = [row["answer"] for row in rollouts.lines(golds, seed)]
    return answers, [gold.answers for gold in golds for _ in range(rollouts.ROLLOUTS)]


def one_by_one(answers: Sequence[str | None], golds: Sequence[list[str]]) -> list[tuple[Any, ...]]:
    """The plain definition."""
    return [
        (reference.exact_match(answer, gold), reference.f1(answer, gold))
        for answer, gold in zip(answers, golds, strict=True)
    ]


def remembering(answers: Sequence[str | None], golds: Sequence[list[str]]) -> list[tuple[Any, ...]]:
    """The same with each distinct string normalised and counted once."""

    @cache
    def form(text: str) -> tuple[str, Counter[str]]:
        normal = normalise(text)
        return normal, Counter(normal.split())

    def score(answer: str | None, gold: str) -> tuple[float, float]:
        if answer is None:
            return 0.0, 0.0
        (a, ours), (g, theirs) = form(answer), form(gold)
        same = float(a == g != "")
        if a in reference.CLOSED or g in reference.CLOSED:
            return same, same
        shared = (ours & theirs).total()
        return same, 2 * shared / (ours.total() + theirs.total()) if shared else 0.0

    found = []
    for answer, options in zip(answers, golds, strict=True):
        scores = [score(answer, gold) for gold in options]
        found.append((max(s[0] for s in scores), max(s[1] for s in scores)))
    return found


def measure(n: int, sample: int, rounds: int) -> list[Row]:
    answers, golds = pairs(n)
    em, f1 = answer_metrics(answers, golds)
    ours = list(zip(em[:sample].tolist(), f1[:sample].tolist(), strict=True))
    ways: dict[str, Callable[[], Any]] = {"ours": lambda: answer_metrics(answers, golds)}
    peers = {
        "plain Python": one_by_one,
        "plain Python, distinct strings once": remembering,
    }
    for name, way in peers.items():
        if way(answers[:sample], golds[:sample]) != ours:
            sys.exit(f"{name} scores a pair otherwise")
        ways[name] = partial(way, answers[:sample], golds[:sample])
    spent = turns(ways, rounds)
    for name in peers:
        spent[name] = [taken * n / sample for taken in spent[name]]
    middle = medians(spent)
    return [
        Row(
            name=f"EM and F1 of {n:,} pairs",
            seconds=middle["ours"],
            against=name,
            peer_seconds=middle[name],
            goal=GOAL if name == "plain Python" else None,
            detail=f"{n / middle['ours']:,.0f} pairs/s; the peer timed on {sample:,} pairs a "
            f"round, all scores equal; lowest of {rounds} rounds "
            f"{lowest(spent['ours'], spent[name]):.1f}x; "
            f"mean EM {np.mean(em):.3f}, mean F1 {np.mean(f1):.3f}",
        )
        for name in peers
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--sample", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.pairs, options.sample, options.rounds = 100_000, 10_000, 3
    before = machine()
    rows = measure(options.pairs, options.sample, options.rounds)
    about = {"pairs": options.pairs, "sample": options.sample, "rounds": options.rounds}
    finish(options, "exact match and F1, to the bit", before, rows, **about)


if __name__ == "__main__":
    main()
