"""What makes a question sound: grounded, answerable in one way only, and with no way round.

The checks read the passages as text and know nothing of how they were written. They run on every
candidate when a world is built, and on a finished world by `check_world`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from herald_jax.data.records import Passage
from herald_jax.data.text import normalise
from herald_jax.world.facts import Entity
from herald_jax.world.names import WorldError
from herald_jax.world.questions import Question
from herald_jax.world.splits import overlaps
from herald_jax.world.terms import Atlas, Both, Every, Follow, Named, named


class CorpusText:
    """Normalised text of the passages, and which of them hold a word."""

    def __init__(self, passages: Iterable[Passage]):
        self.titles: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self._holders: dict[str, list[str]] = {}
        self._mentions: dict[str, tuple[str, ...]] = {}
        for passage in passages:
            self.titles[passage.passage_id] = normalise(passage.title)
            text = normalise(f"{passage.title} {passage.text}")
            self.texts[passage.passage_id] = text
            for token in dict.fromkeys(text.split()):
                self._holders.setdefault(token, []).append(passage.passage_id)

    def holds(self, passage_id: str, form: str) -> bool:
        """Whether a form occurs in title and text as a run of whole normalised words."""
        return occurs(form, self.texts[passage_id])

    def mentions(self, form: str) -> tuple[str, ...]:
        """Passages in which a form occurs."""
        if form not in self._mentions:
            run = _run(form)
            rarest = min((self._holders.get(word, []) for word in run.split()), key=len, default=[])
            self._mentions[form] = tuple(id_ for id_ in rarest if run in f" {self.texts[id_]} ")
        return self._mentions[form]


@lru_cache(maxsize=1 << 16)
def _run(form: str) -> str:
    """A form as it stands between the words of a normalised text; "" when it has no word."""
    words = normalise(form)
    return f" {words} " if words else ""


def occurs(form: str, normalised_text: str) -> bool:
    """Whether a form, normalised, is a run of whole words of a normalised text; "" never is."""
    run = _run(form)
    return run != "" and run in f" {normalised_text} "


def refusals(question: Question, atlas: Atlas, corpus: CorpusText) -> list[str]:
    """Reasons why a question is unsound; none when it is sound."""
    if not question.answers or question.answers != atlas.answers(question.term):
        return ["the facts do not give this one answer"]
    return [
        *_in_question(question),
        *_ungrounded(question, corpus),
        *_unfindable(question, corpus),
        *_one_sided(question, atlas),
        *_shortcuts(question, corpus),
    ]


def check_world(questions: Sequence[Question], passages: Sequence[Passage], atlas: Atlas) -> None:
    """Checks a whole world.

    Raises:
        WorldError: lists everything that is unsound.
    """
    corpus = CorpusText(passages)
    faults = [
        f"{question.question_id}: {reason}"
        for question in questions
        for reason in refusals(question, atlas, corpus)
    ]
    faults += shared_names(atlas.entities.values())
    faults += overlaps(questions)
    if faults:
        raise WorldError("the world is unsound:\n" + "\n".join(faults))


def shared_names(entities: Iterable[Entity]) -> Iterator[str]:
    """Names that two entities answer to."""
    owners: dict[str, str] = {}
    for entity in entities:
        for form in dict.fromkeys(normalise(alias) for alias in entity.aliases):
            if owners.setdefault(form, entity.passage_id) != entity.passage_id:
                yield f"{owners[form]} and {entity.passage_id} share the name {form!r}"


def _in_question(question: Question) -> Iterator[str]:
    text = normalise(question.text)
    for form in _items(question):
        if occurs(form, text):
            yield f"the question holds the answer {form!r}"


def _ungrounded(question: Question, corpus: CorpusText) -> Iterator[str]:
    for node in question.nodes:
        for passage_id in node.support_ids:
            if passage_id not in corpus.texts:
                yield f"{node.node_id}: no passage {passage_id}"
            elif not any(corpus.holds(passage_id, form) for form in node.answers):
                yield f"{node.node_id}: {passage_id} does not hold its answer"


def _unfindable(question: Question, corpus: CorpusText) -> Iterator[str]:
    """Supports that neither the question nor an earlier node leads to by name."""
    found = {node.node_id: node.answers for node in question.nodes}
    given = [entity.core for entity in named(question.term)]
    for node in question.nodes:
        for passage_id in node.support_ids:
            if node.depends_on:
                clues = [normalise(form) for id_ in node.depends_on for form in found[id_]]
                led = corpus.titles.get(passage_id, "") in clues
            else:
                led = any(occurs(core, corpus.texts.get(passage_id, "")) for core in given)
            if not led:
                yield f"{node.node_id}: nothing known by then names {passage_id}"


def _one_sided(question: Question, atlas: Atlas) -> Iterator[str]:
    """Conditions that settle the answer without the other one."""
    if isinstance(question.term, Both):
        for side in (question.term.left, question.term.right):
            if len(atlas.values(side)) < 2:
                yield f"{side.relation} alone gives the answer"


def _shortcuts(question: Question, corpus: CorpusText) -> Iterator[str]:
    """Single passages that join what should take several."""
    match question.term:
        case Follow(of=Named()):
            return
        case Every():
            for passage_id in corpus.mentions(question.term.value.core):
                if sum(corpus.holds(passage_id, form) for form in _items(question)) > 1:
                    yield f"{passage_id} alone gives more than one part of the answer"
        case Both(left=Follow(of=Named() as a), right=Follow(of=Named() as b)):
            for passage_id in corpus.mentions(a.core):
                if corpus.holds(passage_id, b.core) and _answers(question, passage_id, corpus):
                    yield f"{passage_id} joins both conditions to the answer"
        case term:
            for start in named(term):
                for passage_id in corpus.mentions(start.core):
                    if _answers(question, passage_id, corpus):
                        yield f"{passage_id} joins {start.core} to the answer"


def _answers(question: Question, passage_id: str, corpus: CorpusText) -> bool:
    return any(corpus.holds(passage_id, form) for form in question.answers)


def _items(question: Question) -> tuple[str, ...]:
    """Forms that give an answer away: of a list, every one of its parts."""
    if isinstance(question.term, Every):
        return tuple(form for node in question.nodes for form in node.answers[-1:])
    return question.answers
