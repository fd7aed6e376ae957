"""Synthetic trajectories: as arrays for the engine and for NumPy, as records for the reference.

Questions have 8 rollouts each and up to 4 support passages. A rollout makes up to 5 searches of up
to 8 results, cites up to 4 ids (most of them retrieved, some not, some outside the corpus, some
twice) and has up to 8 passages on offer that it neither retrieved nor cited; a few search or cite
nothing. Lists are of different lengths and end in `PAD`. Passages of one question are neighbours,
so that what is searched, cited and on offer overlaps with the support now and then.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from herald_jax.types import NO_ANSWER, PAD

Ints = NDArray[np.int32]

PASSAGES = 20_000
ROLLOUTS = 8
SEARCHES, RESULTS = 5, 8
RETRIEVED, CITED, SUPPORT, CANDIDATES = SEARCHES * RESULTS, 4, 4, 8
GOLD_WORDS, OTHER_WORDS = 3, 9
NEIGHBOURS = 400


@dataclass(frozen=True)
class Synthetic:
    """n trajectories with axis n first, Q = n / 8 questions; ids as codes, `PAD` at the end."""

    retrieved: Ints  # [n, 40]
    citations: Ints  # [n, 4]
    candidates: Ints  # [n, 8]
    support: Ints  # [Q, 4]
    searches: Ints  # [n]
    invalid: Ints  # [n]
    repeated: NDArray[np.bool_]  # [n]
    answer_tokens: Ints  # [n]
    malformed: Ints  # [n]
    gold_words: Ints  # [n] words that answer and gold share
    f1: NDArray[np.float64]  # [n]

    def __len__(self) -> int:
        return len(self.searches)

    @property
    def question(self) -> Ints:
        """int32 [n]."""
        return np.arange(len(self), dtype=np.int32) // ROLLOUTS


def generate(n: int, seed: int) -> Synthetic:
    """n trajectories, a multiple of 8."""
    rng = np.random.default_rng(seed)

    def integers(low: int, high: int, *shape: int) -> Ints:
        return rng.integers(low, high, shape, dtype=np.int32)

    def chance(p: float, *shape: int) -> NDArray[np.bool_]:
        return rng.random(shape, dtype=np.float32) < p

    home = integers(0, PASSAGES, n // ROLLOUTS)
    support = near(home, np.cumsum(integers(1, 40, len(home), SUPPORT), axis=1, dtype=np.int32))
    support = cut(support, integers(1, SUPPORT + 1, len(home)))
    of_row = np.repeat(support, ROLLOUTS, axis=0)
    home = np.repeat(home, ROLLOUTS)

    searches = integers(1, SEARCHES + 1, n) * ~chance(0.05, n)
    retrieved = near(home, integers(0, NEIGHBOURS, n, RETRIEVED))
    for s in range(SUPPORT):  # half of the support is found, in its own stretch of the results
        place, found = RESULTS * s + integers(0, RESULTS, n), chance(0.5, n) & (of_row[:, s] >= 0)
        retrieved[found, place[found]] = of_row[found, s]
    retrieved[chance(0.01, n, RETRIEVED)] += PASSAGES  # ids of no passage
    retrieved = cut(retrieved, (searches * RESULTS * rng.uniform(0.7, 1.0, n)).astype(np.int32))

    picked = np.take_along_axis(retrieved, integers(0, RETRIEVED, n, CITED), axis=1)
    kind = rng.random((n, CITED), dtype=np.float32)
    anywhere = near(home, integers(0, NEIGHBOURS, n, CITED))
    citations = np.where(picked >= 0, picked, retrieved[:, :1])
    citations = np.where(kind > 0.9, of_row[:, :1], citations)
    citations = np.where(kind > 0.95, anywhere, citations)
    citations = np.where((kind > 0.99) | (citations < 0), anywhere + 2 * PASSAGES, citations)
    citations = cut(citations, integers(1, CITED + 1, n) * ~chance(0.05, n))

    step = 1 + integers(0, 30, n)
    drawn = near(home, step[:, None] * np.arange(1, 2 * CANDIDATES + 1, dtype=np.int32))
    drawn[:, 3] = np.where(chance(0.3, n), of_row[:, 0], drawn[:, 3])
    taken = np.concatenate([retrieved, citations], axis=1)
    fresh = ~np.stack([(taken == drawn[:, [k]]).any(axis=1) for k in range(drawn.shape[1])], axis=1)
    fresh[:, 3] &= (drawn[:, [3]] == np.delete(drawn, 3, axis=1)).sum(axis=1) == 0
    order = np.argsort(~fresh, axis=1, kind="stable")
    candidates = np.take_along_axis(np.where(fresh, drawn, PAD), order, axis=1)[:, :CANDIDATES]
    candidates = cut(candidates, np.where(chance(0.8, n), CANDIDATES, integers(0, 8, n)))

    gold_words = integers(0, GOLD_WORDS + 1, n)
    answer_tokens = gold_words + integers(0, OTHER_WORDS, n)
    answer_tokens[chance(0.02, n)] = NO_ANSWER
    gold_words = np.where(answer_tokens > 0, gold_words, 0)
    return Synthetic(
        retrieved=retrieved,
        citations=citations,
        candidates=np.ascontiguousarray(candidates),
        support=support,
        searches=searches,
        invalid=integers(0, 3, n) * chance(0.1, n),
        repeated=chance(0.2, n) & (searches > 1),
        answer_tokens=answer_tokens,
        malformed=chance(0.05, n).astype(np.int32),
        gold_words=gold_words,
        f1=2 * gold_words / (np.maximum(answer_tokens, 0) + GOLD_WORDS),
    )


def near(home: Ints, offset: Ints) -> Ints:
    """Passages some places behind a question's home: [n], [n, W] -> [n, W]."""
    return (home[:, None] + offset) % PASSAGES


def cut(ids: Ints, lengths: Ints) -> Ints:
    """The first of each list, `PAD` behind."""
    return np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, PAD)


def corpus() -> set[str]:
    """Passage ids."""
    return {name(code) for code in range(PASSAGES)}


def name(code: int) -> str:
    return f"p{code:06d}"


def names(codes: Ints) -> list[str]:
    return [name(code) for code in codes.tolist() if code >= 0]


def record(data: Synthetic, row: int) -> tuple[dict, dict, list[str]]:
    """A trajectory, its oracle row and its candidates, as the reference takes them."""
    searches, words = int(data.searches[row]), int(data.answer_tokens[row])
    question = row // ROLLOUTS
    queries = [f"query {i}" for i in range(searches)]
    if data.repeated[row]:
        queries[-1] = queries[0]
    retrieved = names(data.retrieved[row])
    steps = [
        {"query": query, "retrieved": retrieved[i::searches], "valid": True}
        for i, query in enumerate(queries)
    ]
    steps += [{"query": "", "retrieved": None, "valid": False}] * int(data.invalid[row])
    shared = int(data.gold_words[row])
    answer = [f"gold{i}" for i in range(shared)] + [f"other{i}" for i in range(words - shared)]
    trajectory = {
        "trajectory_id": f"t{row}",
        "question_id": f"q{question}",
        "steps": steps,
        "answer": None if words == NO_ANSWER else " ".join(answer),
        "citations": names(data.citations[row]),
        "malformed_citations": int(data.malformed[row]),
    }
    gold = {
        "answers": (" ".join(f"gold{i}" for i in range(GOLD_WORDS)),),
        "support_ids": names(data.support[question]),
    }
    return trajectory, gold, names(data.candidates[row])
