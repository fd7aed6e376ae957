"""Building a world: entities, passages, and as many sound questions as were asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from herald_jax.data.records import OracleRow, Passage
from herald_jax.data.text import normalise
from herald_jax.world.checks import CorpusText, check_world, refusals
from herald_jax.world.facts import MAX_COUNTIES, Entity, build_entities
from herald_jax.world.names import WorldError
from herald_jax.world.passages import build_passages
from herald_jax.world.questions import Question, propose, word
from herald_jax.world.splits import SHARES, portions, split_counties
from herald_jax.world.streams import Stream
from herald_jax.world.terms import KINDS, Atlas, Term

Progress = Callable[[str, int, int], None]  # stage, done, total

KIND_WEIGHTS: Final = MappingProxyType(
    {
        "single": 2,
        "chain2": 3,
        "chain3": 2,
        "chain4": 2,
        "conjunction": 2,
        "wide": 2,
        "fan_in": 2,
    }
)

# A county has 46 passages; a small world is mostly passages that no question needs.
LEAST_COUNTIES: Final = 40
QUESTIONS_PER_COUNTY: Final = 40
MAX_QUESTIONS: Final = MAX_COUNTIES * QUESTIONS_PER_COUNTY

# Draws from one county without a new sound question before it counts as used up for a kind.
PATIENCE: Final = 60


@dataclass(frozen=True)
class World:
    """A closed corpus, questions over it and their gold labels.

    Attributes:
        seed: what it was built from.
        entities: what the passages are about, with all facts; oracle knowledge.
        passages: the corpus, sorted by passage id.
        questions: sound questions of all splits.
    """

    seed: int
    entities: tuple[Entity, ...]
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @cached_property
    def atlas(self) -> Atlas:
        """Lookup of the facts."""
        return Atlas(self.entities)

    @cached_property
    def oracle(self) -> tuple[OracleRow, ...]:
        """One oracle row per question, in the order of the questions."""
        return tuple(question.oracle_row() for question in self.questions)

    def split(self, name: str) -> tuple[Question, ...]:
        """Questions of one split.

        Raises:
            ValueError: there is no such split.
        """
        if name not in SHARES:
            raise ValueError(f"no split {name!r}; the splits are {', '.join(SHARES)}")
        return tuple(question for question in self.questions if question.split == name)

    def check(self) -> None:
        """Checks every question, name and split again.

        Raises:
            WorldError: lists everything that is unsound.
        """
        check_world(self.questions, self.passages, self.atlas)


def build_world(
    seed: int = 0,
    questions: int = 200,
    *,
    kinds: Mapping[str, int] = KIND_WEIGHTS,
    counties: int | None = None,
    progress: Progress | None = None,
) -> World:
    """Builds a world; the same arguments give the same world on every platform.

    Args:
        seed: any integer.
        questions: how many, over all splits.
        kinds: integer weight of each kind of question; kinds left out are not asked.
        counties: how many counties, 46 passages each; None takes enough for the questions.
        progress: told how many questions are made.

    Raises:
        WorldError: an argument is out of range, or the counties do not hold that many questions.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise WorldError(f"no question kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    if questions < 1 or min(kinds.values(), default=0) < 0 or not sum(kinds.values()):
        raise WorldError("a world needs a question, and kinds of weight zero or more, one positive")
    if counties is None:
        counties = max(LEAST_COUNTIES, -(-questions // QUESTIONS_PER_COUNTY))
    if counties > MAX_COUNTIES:
        raise WorldError(
            f"{questions} questions in {counties} counties need more names than there are: "
            f"the limits are {MAX_QUESTIONS} questions and {MAX_COUNTIES} counties"
        )
    if counties < len(SHARES) + 2:
        raise WorldError(f"{counties} counties cannot be split; at least {len(SHARES) + 2} can")
    entities = build_entities(seed, counties)
    passages = build_passages(seed, entities)
    made = _questions(seed, questions, kinds, entities, passages, progress)
    world = World(seed, entities, passages, made)
    world.check()
    return world


def _questions(
    seed: int,
    total: int,
    kinds: Mapping[str, int],
    entities: Sequence[Entity],
    passages: Sequence[Passage],
    progress: Progress | None,
) -> tuple[Question, ...]:
    maker = _Maker(seed, entities, passages)
    made: list[Question] = []
    for split, counties in split_counties(seed, len(maker.counties)).items():
        wanted = portions(portions(total, SHARES)[split], kinds)
        for kind in (kind for kind in KINDS if wanted.get(kind)):
            open_counties = {county: maker.stream(kind, county) for county in counties}
            number = 0
            while wanted[kind]:
                if not open_counties:
                    raise WorldError(
                        f"{len(counties)} {split} counties do not hold {wanted[kind]} more {kind} "
                        "questions: ask for fewer, or for more counties"
                    )
                for county, stream in list(open_counties.items())[: wanted[kind]]:
                    question_id = f"{split}-{kind}-{number:05d}"
                    question = maker.make(question_id, split, kind, county, stream)
                    if question is None:
                        del open_counties[county]
                        continue
                    made.append(question)
                    number += 1
                    wanted[kind] -= 1
                    if progress:
                        progress("questions", len(made), total)
    return tuple(made)


class _Maker:
    """Makes questions one by one and remembers what was asked."""

    def __init__(self, seed: int, entities: Sequence[Entity], passages: Sequence[Passage]):
        self._seed = seed
        self._atlas = Atlas(entities)
        self._corpus = CorpusText(passages)
        self._asked: set[Term | str] = set()
        self.counties: dict[int, list[Entity]] = {}
        for entity in entities:
            self.counties.setdefault(entity.county, []).append(entity)

    def stream(self, kind: str, county: int) -> Stream:
        return Stream(self._seed, "questions", kind, county)

    def make(
        self, question_id: str, split: str, kind: str, county: int, stream: Stream
    ) -> Question | None:
        """A sound question that was not asked before; None when the county has no more."""
        for _ in range(PATIENCE):
            term = propose(kind, self.counties[county], self._atlas, stream)
            if term is None or term in self._asked:
                continue
            text = word(term, stream)
            answers = self._atlas.answers(term)
            nodes = self._atlas.hops(term)
            question = Question(question_id, split, kind, text, term, answers, nodes)
            if normalise(text) in self._asked or refusals(question, self._atlas, self._corpus):
                continue
            self._asked.update((term, normalise(text)))
            return question
        return None
