"""Seeded pools that are legal and unpleasant, to drive any two accounts of an audit apart.

`pool(seed)` returns (trajectories, passages, oracle) as lists of dicts, ready to be written as
JSON lines: ids that differ only by case, trimming, leading zeros or composition; ids of no
passage among results, citations and support; nothing retrieved, cited, supported or answered;
things that were not logged; repeats everywhere; scores that tie; candidates that run out.
`settings(seed)` draws what an audit of such a pool may be asked for.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reference.pools import SELECTIONS
from reference.settings import PENALTIES, Settings

# Ids are compared exactly, so that all of these are different. The integer is the id "7".
PASSAGE_IDS: tuple[str | int, ...] = (
    "p1", "P1", " p1", "p1 ", "p1\u00a0", "p01", 7, "007", "7.0", "07",
    "caf\u00e9", "cafe\u0301", "\uff50\uff11", "stra\u00dfe", "strasse", "fake:t1", "fake:t1_",
    "fake:t2", "fake:", "", " ", "\U0001f427", "\uffee", "z", "-1", "0", "null", "a,b", 'q"', "\\n",
)  # fmt: skip
FOREIGN_IDS: tuple[str | int, ...] = (
    "nowhere", "p1\t", "p\u0131", "0007", 70, "fake:t1__", "fake:t3", "fake:T1", "Z", "\u00e9",
)  # fmt: skip
TRAJECTORY_IDS: tuple[str | int, ...] = (
    "t1", "t2", "t3", "T1", " t1", "t1 ", "t01", 1, "01", "1.0", "t1_", "t\u00e9", "te\u0301", "",
)  # fmt: skip
QUESTION_IDS: tuple[str | int, ...] = ("q1", "Q1", "q1 ", "q01", 1, "01", "\u00e9", "e\u0301", "*")

WORDS = (
    "mill", "tarn", "Tarn", "\uff54\uff41\uff52\uff4e", "wheel", "Stra\u00dfe", "STRASSE",
    "caf\u00e9", "cafe\u0301", "\u7ea2\u697c\u68a6", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "1914\u20131918", "\ufb01n", "the", "a", "x_y", "o\u2019brien", "\u0130zmir", "\u2167", "--",
    "5\u00bd",
)  # fmt: skip
BLANKS = ("", " ", "\t\n", "\u3000", "\u00a0\u2003", "\u001c", "\u0085")
GOLDS = (
    "Oslo", "the tarn", "yes", "no", "noanswer", "The The", "A", "an", "?!", "", "\u00bf\u2026",
    " ", "Lima Lima Lima", "lima", "1914-1918", "\u201cHeroes\u201d", "Ｔｏｋｙｏ", "tokyo",
    "mill wheel of the tarn", "Stra\u00dfe", "$", "no answer", "caf\u00e9", "cafe\u0301",
)  # fmt: skip
MODELS = ("", "m", "M", "m ", "gpt/4 (x)", "\u00e9")


@dataclass(frozen=True)
class Shape:
    """How large a pool is, and how often each unpleasant thing happens."""

    passages: int = 12
    questions: int = 4
    rollouts: tuple[int, int] = (1, 5)
    steps: tuple[int, int] = (0, 5)
    results: tuple[int, int] = (0, 4)
    citations: tuple[int, int] = (0, 4)
    words: tuple[int, int] = (0, 6)
    vocabulary: int = len(WORDS)
    strange_ids: bool = True
    foreign: float = 0.1
    not_logged: float = 0.05
    no_oracle: float = 0.1
    no_answer: float = 0.15
    invalid_step: float = 0.15
    cites_seen: float = 0.7
    models: int = 3


PLAIN = Shape(strange_ids=False, foreign=0, not_logged=0, no_oracle=0, invalid_step=0.05)

SHAPES = {
    "mixed": Shape(),
    "plain": PLAIN,
    "many_rollouts": replace(PLAIN, passages=25, rollouts=(1, 17), questions=3, foreign=0.05),
    "one_row": Shape(questions=1, rollouts=(1, 1), not_logged=0, no_oracle=0),
    "one_passage": Shape(passages=1, results=(0, 2)),
    "two_passages": Shape(passages=2, results=(0, 2), cites_seen=0.9),
    "three_passages": Shape(passages=3, results=(0, 2), cites_seen=0.9),
    "no_passage": Shape(passages=0),
    "equal_scores": replace(PLAIN, passages=25, vocabulary=2, words=(1, 2), strange_ids=True),
    "nothing_but_dashes": Shape(passages=5, words=(0, 0)),
    "long_lists": Shape(passages=30, results=(20, 90), citations=(20, 60), steps=(1, 9)),
    "nothing_cited": Shape(citations=(0, 0), not_logged=0),
    "no_step": Shape(steps=(0, 0), not_logged=0),
    "nothing_logged": Shape(not_logged=1),
    "no_gold": Shape(no_oracle=1, not_logged=0),
    "no_row": Shape(questions=0),
    "all_foreign": Shape(foreign=0.8),
    "many_questions": Shape(questions=9, rollouts=(1, 3), passages=29),
}


def shape_name(seed: int) -> str:
    """The kind of pool that a seed gives; consecutive seeds go round all kinds."""
    return list(SHAPES)[seed % len(SHAPES)]


def pool(seed: int) -> tuple[list[dict], list[dict], list[dict]]:
    """Trajectories, passages and oracle rows, the same for the same seed."""
    return Maker(random.Random(seed), SHAPES[shape_name(seed)]).pool()


def settings(seed: int) -> Settings:
    """Settings far from the defaults: any lattice, other budgets, other estimands, other rules."""
    rng = random.Random(f"settings {seed}")
    return Settings(
        lattice=tuple(rng.sample(sorted(PENALTIES), rng.randint(1, 4))),
        scales=(0, 0.3, 1),
        min_searches=rng.choice((0, 1, 1, 2, 3)),
        max_searches=rng.choice((0, 1, 2, 4, 6)),
        rules=rng.choice(("unicode", "squad")),
        assume_no_citations=rng.random() < 0.3,
        selection=rng.choice(SELECTIONS),
        weighting=rng.choice(("question", "row")),
        tie_tolerance=rng.choice((1e-6, 0.0501)),
        generator=rng.choice(("lexical", "bm25")),
        candidates=rng.choice((1, 2, 8, 50)),
        budgets=rng.choice(((1,), (3, 5), (1, 40))),
        bm25_variant=rng.choice(("okapi", "lucene")),
        certificate=rng.choice(("generator", "exhaustive")),
    )


class Maker:
    """Draws the parts of one pool."""

    def __init__(self, rng: random.Random, shape: Shape):
        self.rng = rng
        self.shape = shape
        self.passage_ids = self.distinct_ids(PASSAGE_IDS, "p", shape.passages)
        near = PASSAGE_IDS if shape.strange_ids else ()
        known = set(map(str, self.passage_ids))
        self.foreign_ids = [i for i in (*FOREIGN_IDS, *near) if str(i) not in known]
        self.vocabulary = rng.sample(WORDS, shape.vocabulary)
        self.models = rng.sample(MODELS, shape.models)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def count(self, bounds: tuple[int, int]) -> int:
        return self.rng.randint(*bounds)

    def distinct_ids(self, strange: Sequence[str | int], stem: str, n: int) -> list[str | int]:
        """`n` ids, the strange ones first when the shape wants them, in no order."""
        pool = list(strange) if self.shape.strange_ids else []
        self.rng.shuffle(pool)
        plain = [f"{stem}-{i}" for i in range(n)]
        ids = (pool + plain)[:n]
        self.rng.shuffle(ids)
        return ids

    def text(self, bounds: tuple[int, int] | None = None) -> str:
        n = self.count(bounds or self.shape.words)
        gaps = (" ", "  ", ", ", "\u3000", "-", "\u2014")
        words = [self.rng.choice(self.vocabulary) + self.rng.choice(gaps) for _ in range(n)]
        return "".join(words)

    def ids(self, n: int, preferred: Sequence[str | int] = ()) -> list[str | int]:
        """`n` ids with repeats: of the preferred, of the corpus, of no passage."""
        found = []
        for _ in range(n):
            if self.chance(self.shape.foreign) or not self.passage_ids:
                found.append(self.rng.choice(self.foreign_ids))
            elif preferred and self.chance(self.shape.cites_seen):
                found.append(self.rng.choice(preferred))
            else:
                found.append(self.rng.choice(self.passage_ids))
        return found

    def pool(self) -> tuple[list[dict], list[dict], list[dict]]:
        passages = [self.passage(id_) for id_ in self.passage_ids]
        question_ids = self.distinct_ids(QUESTION_IDS, "q", self.shape.questions)
        oracle, trajectories = [self.oracle_row("asked by no one")], []
        counts = [self.count(self.shape.rollouts) for _ in question_ids]
        trajectory_ids = iter(self.distinct_ids(TRAJECTORY_IDS, "t", sum(counts)))
        for question_id, count in zip(question_ids, counts, strict=True):
            gold = self.oracle_row(question_id)
            if not self.chance(self.shape.no_oracle):
                oracle.append(gold)
            question = self.text((0, 6))
            for _ in range(count):
                row = self.trajectory(next(trajectory_ids), gold)
                trajectories.append(row | {"question_id": question_id, "question": question})
        self.rng.shuffle(trajectories)
        self.rng.shuffle(oracle)
        return trajectories, passages, oracle

    def passage(self, id_: str | int) -> dict:
        found = {"passage_id": id_, "text": self.text()}
        if self.chance(0.7):
            found["title"] = self.text((0, 2)) if self.shape.words[1] else self.rng.choice(BLANKS)
        return found

    def oracle_row(self, question_id: str | int) -> dict:
        """Gold answers may be none, EMPTY or a bare string; support may be none or foreign."""
        answers: list[str] | str = [self.rng.choice(GOLDS) for _ in range(self.rng.randint(0, 3))]
        if answers and self.chance(0.1):
            answers = answers[0]
        return {
            "question_id": question_id,
            "answers": answers,
            "support_ids": self.ids(self.rng.choice((0, 1, 2, 2, 3, 5))),
        }

    def step(self, queries: Sequence[str], gold: dict) -> dict:
        found: dict = {
            "query": self.rng.choice(BLANKS) if self.chance(0.1) else self.rng.choice(queries),
            "retrieved": self.ids(self.count(self.shape.results), gold["support_ids"]),
        }
        executed = bool(found["query"].split())
        if self.chance(self.shape.invalid_step):
            found["valid"] = executed = False
        elif self.chance(0.3):
            found["valid"] = True
        # What a step that was not executed returned is nobody's business, logged or not.
        if self.chance(self.shape.not_logged / 2 if executed else 0.5):
            if self.chance(0.5):
                found["retrieved"] = None
            else:
                del found["retrieved"]
        return found

    def trajectory(self, trajectory_id: str | int, gold: dict) -> dict:
        phrase = self.rng.choice(("mill wheel", "Stra\u00dfe 5", "caf\u00e9"))
        queries = (
            phrase,
            f"  {phrase.upper()}\u3000",
            phrase.replace(" ", " \t "),
            phrase.replace("\u00e9", "e\u0301"),
            self.text((1, 3)),
            self.text((1, 3)),
        )
        steps = [self.step(queries, gold) for _ in range(self.count(self.shape.steps))]
        seen = [id_ for step in steps for id_ in step.get("retrieved") or ()]
        found = {
            "trajectory_id": trajectory_id,
            "steps": steps,
            "answer": self.answer(gold),
            "citations": self.ids(self.count(self.shape.citations), seen),
            "rollout": self.rng.choice((0, 0, 1, 2, 3, 1_000_000)),
            "selected": self.chance(0.4),
        }
        if self.chance(self.shape.not_logged / 2):
            found["citations"] = None
        elif self.chance(self.shape.not_logged):
            del found["citations"]
        if self.chance(0.8):
            found["model"] = self.rng.choice(self.models)
        if self.chance(0.6):
            found["pool"] = self.rng.choice(("", "one", "two"))
        if self.chance(0.2):
            found["malformed_citations"] = self.rng.randint(0, 2)
        if self.chance(0.3):
            found["generated_tokens"] = self.rng.choice((None, 0, 31))
        for key in ("rollout", "selected"):
            if self.chance(0.1):
                del found[key]
        return found

    def answer(self, gold: dict) -> str | None:
        if self.chance(self.shape.no_answer):
            return self.rng.choice((None, *BLANKS))
        golds = gold["answers"]
        if golds and self.chance(0.5):
            chosen = golds if isinstance(golds, str) else self.rng.choice(golds)
            return self.rng.choice(("", "It is the ", "The ", "\u201c")) + chosen
        return self.rng.choice((self.text(), self.rng.choice(GOLDS)))
