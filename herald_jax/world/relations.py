"""Relations between entities, and every way the world's text words them.

One table serves both directions: `passages` and `questions` fill the templates in, `reading` turns
the same templates into patterns. In a template `{x}` is the subject and `{y}` the value.

Wordings of one subject type must tell its relations apart, and noun phrases must nest ("the town
where the captain of the ship Grey Heron was born"); tests read every generated text back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation from a subject type to a type of entity or a kind of literal.

    Attributes:
        name: `subject.what`.
        object: type of entity, or kind of literal value.
        states: verb phrases that state it in a passage.
        asks: questions about the value.
        phrases: noun phrases that stand for the value; () when it cannot be a bridge.
        member: noun phrase for one of several values ("a mate on {x}"); "" when there is one value.
        every: question about all subjects with one value ("Which {n} ships ..."); "" when none.
    """

    name: str
    object: str
    states: tuple[str, ...]
    asks: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    member: str = ""
    every: str = ""

    @property
    def subject(self) -> str:
        """Type of the subject."""
        return self.name.split(".")[0]


def _table(relations: Iterable[Relation]) -> MappingProxyType[str, Relation]:
    table: dict[str, Relation] = {}
    for relation in relations:
        if relation.name in table:
            raise ValueError(f"relation {relation.name} is defined twice")
        table[relation.name] = relation
    return MappingProxyType(table)


RELATIONS: Final = _table(
    (
        Relation(
            name="town.river",
            object="river",
            states=("stands on {y}", "lies beside {y}", "grew up along {y}"),
            asks=("Which river flows past {x}?", "On which river does {x} stand?"),
            phrases=("the river that flows past {x}", "the river beside {x}"),
            every="Which {n} towns stand on {x}?",
        ),
        Relation(
            name="town.mayor",
            object="person",
            states=("has {y} as its mayor", "is governed by {y}", "chose {y} as mayor"),
            asks=("Who is the mayor of {x}?", "Who governs {x}?"),
            phrases=("the mayor of {x}",),
        ),
        Relation(
            name="town.fair",
            object="fair",
            states=("is the home of {y}", "holds {y} each year", "draws crowds to {y}"),
            asks=("Which fair is held at {x}?", "What is the name of the fair at {x}?"),
            phrases=("the fair held at {x}",),
        ),
        Relation(
            name="town.craft",
            object="craft",
            states=("is known for its {y}", "lives by its {y}", "is famous for {y}"),
            asks=("For which craft is {x} known?", "Which craft does {x} live by?"),
        ),
        Relation(
            name="town.year",
            object="year",
            states=("was founded in {y}", "was first settled in {y}", "dates from {y}"),
            asks=("In which year was {x} settled?", "When was {x} first settled?"),
        ),
        Relation(
            name="river.source",
            object="hill",
            states=("rises on {y}", "springs from {y}", "begins below {y}"),
            asks=("Where does {x} rise?", "On which hill does {x} begin?"),
        ),
        Relation(
            name="river.fish",
            object="fish",
            states=("is rich in {y}", "is full of {y}", "is fished for {y}"),
            asks=("Which fish is caught in {x}?", "What is {x} fished for?"),
        ),
        Relation(
            name="river.length",
            object="miles",
            states=("runs for {y} miles", "is {y} miles long", "reaches the sea after {y} miles"),
            asks=("How many miles long is {x}?", "For how many miles does {x} run?"),
        ),
        Relation(
            name="person.trade",
            object="trade",
            states=("is a {y}", "works as a {y}", "is known as a {y}"),
            asks=("What is the trade of {x}?", "What does {x} work as?"),
        ),
        Relation(
            name="person.birthplace",
            object="town",
            states=("was born in {y}", "comes from {y}", "grew up in {y}"),
            asks=("In which town was {x} born?", "Where was {x} born?"),
            phrases=("the town where {x} was born", "the birthplace of {x}"),
            every="Which {n} people were born in {x}?",
        ),
        Relation(
            name="person.teacher",
            object="person",
            states=("was taught by {y}", "learned the trade from {y}", "studied under {y}"),
            asks=("Who taught {x}?", "Who was the teacher of {x}?"),
            phrases=("the teacher of {x}",),
        ),
        Relation(
            name="person.guild",
            object="guild",
            states=("trained with {y}", "is a member of {y}", "joined {y}"),
            asks=("Which guild did {x} join?", "With which guild did {x} train?"),
            phrases=("the guild that {x} joined",),
        ),
        Relation(
            name="person.year",
            object="year",
            states=(
                "came into the world in {y}",
                "was christened in {y}",
                "has {y} as year of birth",
            ),
            asks=("In which year was {x} born?", "When was {x} born?"),
        ),
        Relation(
            name="guild.seat",
            object="town",
            states=("has its hall in {y}", "meets in {y}", "keeps its house at {y}"),
            asks=("In which town does {x} meet?", "Where is the hall of {x}?"),
            phrases=("the town where {x} meets", "the home town of {x}"),
            every="Which {n} guilds meet in {x}?",
        ),
        Relation(
            name="guild.founder",
            object="person",
            states=("was founded by {y}", "owes its charter to {y}", "was set up by {y}"),
            asks=("Who founded {x}?", "Who was the founder of {x}?"),
            phrases=("the founder of {x}",),
        ),
        Relation(
            name="guild.flagship",
            object="ship",
            states=("sends its goods on {y}", "ships its wares on {y}", "trades by way of {y}"),
            asks=("Which ship carries the goods of {x}?", "On which ship does {x} send its goods?"),
            phrases=("the ship that carries the goods of {x}",),
        ),
        Relation(
            name="guild.sign",
            object="sign",
            states=(
                "has the {y} as its sign",
                "uses the sign of the {y}",
                "marks its work with the {y}",
            ),
            asks=("What is the sign of {x}?", "Which sign does {x} use?"),
        ),
        Relation(
            name="guild.wardens",
            object="person",
            states=(
                "has {y} as its wardens",
                "is run by the wardens {y}",
                "elected {y} as wardens",
            ),
            member="a warden of {x}",
        ),
        Relation(
            name="ship.captain",
            object="person",
            states=("sails under {y}", "is commanded by {y}", "has {y} as captain"),
            asks=("Who commands {x}?", "Who is the captain of {x}?"),
            phrases=("the captain of {x}",),
        ),
        Relation(
            name="ship.yard",
            object="town",
            states=("was built at {y}", "left the yard at {y}", "was laid down at {y}"),
            asks=("In which town was {x} built?", "Where was {x} built?"),
            phrases=("the town where {x} was built",),
            every="Which {n} ships were built at {x}?",
        ),
        Relation(
            name="ship.owner",
            object="guild",
            states=("belongs to {y}", "is owned by {y}", "was paid for by {y}"),
            asks=("Which guild owns {x}?", "To which guild does {x} belong?"),
            phrases=("the guild that owns {x}",),
        ),
        Relation(
            name="ship.cargo",
            object="cargo",
            states=("carries {y}", "trades in {y}", "is laden with {y}"),
            asks=("Which cargo does {x} carry?", "What is {x} laden with?"),
        ),
        Relation(
            name="ship.mates",
            object="person",
            states=("has {y} as mates", "is worked by the mates {y}", "counts {y} as its mates"),
            member="a mate on {x}",
        ),
        Relation(
            name="fair.honours",
            object="person",
            states=("is held in honour of {y}", "keeps the memory of {y}", "was begun for {y}"),
            asks=("Who is honoured by {x}?", "Whose memory does {x} keep?"),
            phrases=("the person honoured by {x}",),
        ),
        Relation(
            name="fair.month",
            object="month",
            states=("takes place in {y}", "opens in {y}", "falls in {y}"),
            asks=("In which month does {x} take place?", "When does {x} open?"),
        ),
        Relation(
            name="fair.prize",
            object="prize",
            states=("gives a {y} as prize", "rewards the winner with a {y}", "has a {y} to be won"),
            asks=("Which prize does {x} give?", "What can be won at {x}?"),
        ),
        Relation(
            name="fair.judges",
            object="person",
            states=("has {y} as judges", "is judged by {y}", "calls on {y} as judges"),
            member="a judge at {x}",
        ),
        Relation(
            name="book.author",
            object="person",
            states=("was written by {y}", "came from the pen of {y}", "has {y} as its author"),
            asks=("Who wrote {x}?", "Who is the author of {x}?"),
            phrases=("the author of {x}",),
            every="Which {n} books were written by {x}?",
        ),
        Relation(
            name="book.printer",
            object="guild",
            states=("was printed by {y}", "came off the press of {y}", "was first issued by {y}"),
            asks=("Which guild printed {x}?", "By which guild was {x} printed?"),
            phrases=("the guild that printed {x}",),
        ),
        Relation(
            name="book.topic",
            object="topic",
            states=("deals with {y}", "is a study of {y}", "has much to say about {y}"),
            asks=("Which subject does {x} deal with?", "What is {x} a study of?"),
        ),
        Relation(
            name="bridge.river",
            object="river",
            states=("crosses {y}", "spans {y}", "carries the road over {y}"),
            asks=("Which river does {x} cross?", "Which river flows under {x}?"),
            phrases=("the river under {x}", "the river that flows under {x}"),
            every="Which {n} bridges cross {x}?",
        ),
        Relation(
            name="bridge.designer",
            object="person",
            states=("was designed by {y}", "was drawn by {y}", "is the work of {y}"),
            asks=("Who designed {x}?", "Who was the designer of {x}?"),
            phrases=("the designer of {x}",),
        ),
        Relation(
            name="bridge.stone",
            object="stone",
            states=("is built of {y}", "is made of {y}", "rests on piers of {y}"),
            asks=("What is {x} made of?", "Of which stone is {x} built?"),
        ),
        Relation(
            name="bridge.year",
            object="year",
            states=("was opened in {y}", "has stood since {y}", "was finished in {y}"),
            asks=("In which year was {x} opened?", "When was {x} finished?"),
        ),
    )
)

BOTH: Final = ("Who is both {a} and {b}?", "Which person is {a} and also {b}?")
IN_ORDER: Final = " Name them in alphabetical order."
