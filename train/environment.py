"""The search environment: passages, a BM25 index, and what the policy is told after each turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from herald_jax.data.records import OracleRow, Passage
from herald_jax.search import CorpusIndex
from herald_jax.train.chat import ERRORS, Turn, shown, tool_message
from herald_jax.train.tokens import Tokeniser
from herald_jax.types import PAD

NOTHING: Final = "nothing found"
_KEPT: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Task:
    """A question as the policy meets it: no gold label is in here."""

    question_id: str
    question: str
    pool: str = ""


@dataclass(frozen=True, eq=False)
class Tasks:
    """Questions, the corpus, and apart from both the gold labels.

    Attributes:
        train: questions to learn from.
        held_out: questions to evaluate on.
        passages: the corpus, sorted by passage id.
        oracle: gold labels by question id; rewards read them, the environment does not.
    """

    train: tuple[Task, ...]
    held_out: tuple[Task, ...]
    passages: tuple[Passage, ...]
    oracle: tuple[OracleRow, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What comes back after a turn that is not the last.

    Attributes:
        tokens: ids of the tool's message.
        retrieved: ids of passages, best first; empty after a turn that could not be executed.
    """

    tokens: tuple[int, ...]
    retrieved: tuple[str, ...] = ()


class Environment:
    """Searches for all rollouts of a step together.

    Args:
        passages: the corpus.
        tokeniser: writes tool messages.
        results: passages that a search brings back.
        passage_tokens: a passage is cut to this many tokens.
        index: searches `passages`; None builds one.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        tokeniser: Tokeniser,
        *,
        results: int,
        passage_tokens: int,
        index: CorpusIndex | None = None,
    ) -> None:
        self._passages = passages
        self._tokeniser = tokeniser
        self._results = results
        self._passage_tokens = passage_tokens
        self._index = index or CorpusIndex([(p.title, p.text) for p in passages])
        # The same passages and messages come back again and again; a long run keeps the last ones.
        self._text = lru_cache(_KEPT)(self._text_of)
        self._message = lru_cache(_KEPT)(self._message_of)

    def respond(self, turns: Sequence[Turn]) -> list[Reply]:
        """Replies to turns that do not answer: results of a search, or a short error."""
        queries = [turn.query or "" for turn in turns if turn.failure is None]
        found = iter(self._search(queries))
        return [
            self._results_of(next(found))
            if turn.failure is None
            else Reply(self._message(f"error: {ERRORS[turn.failure]}"))
            for turn in turns
        ]

    def search_all(self, queries: Sequence[str]) -> list[Reply]:
        """The replies to many searches, made together."""
        return [self._results_of(codes) for codes in self._search(queries)]

    def _search(self, queries: Sequence[str]) -> list[list[int]]:
        """Places in the corpus of the best passages, for each query."""
        if not queries:
            return []
        codes = self._index.bm25(queries, None, self._results)[0]
        return [[code for code in row if code != PAD] for row in codes.tolist()]

    def _results_of(self, codes: Sequence[int]) -> Reply:
        texts = tuple(self._text(code) for code in codes)
        ids = tuple(self._passages[code].passage_id for code in codes)
        return Reply(self._message("\n".join(texts) or NOTHING), ids)

    def _message_of(self, body: str) -> tuple[int, ...]:
        return tuple(self._tokeniser.encode(tool_message(body)))

    def _text_of(self, code: int) -> str:
        """A passage as it is shown, cut after so many tokens."""
        text = shown(self._passages[code])
        ids = self._tokeniser.encode(text)
        if len(ids) <= self._passage_tokens:
            return text
        return self._tokeniser.decode(ids[: self._passage_tokens]).rstrip("\ufffd") + " …"
