"""Types of entity, and how entities of each type are named and spoken of.

Like `world.relations`, one table serves both directions: text is written from it and read with it.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityType:
    """How entities of one type are named. `{n}` is the core of the name ("Grey Heron").

    Attributes:
        name: type, and the folder of its passage ids (`ship/grey-heron`).
        plural: used in wide questions ("Which three ships ...").
        core: pattern of a core name.
        aliases: forms that count as the name; the first is the canonical one and the title.
        surfaces: forms that stand in running text.
        later: forms that take the place of the subject after the first sentence.
        openings: first sentences, to which a first statement is joined.
        asides: sentences that no question is about.
    """

    name: str
    plural: str
    core: str
    aliases: tuple[str, ...]
    surfaces: tuple[str, ...]
    later: tuple[str, ...]
    openings: tuple[str, ...]
    asides: tuple[str, ...]


_WORD = "[A-Z][a-z]+"

TYPES: Final = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            EntityType(
                name="town",
                plural="towns",
                core=_WORD,
                aliases=("{n}",),
                surfaces=("{n}",),
                later=("The town", "It"),
                openings=(
                    "{n} is a small town",
                    "{n} is a walled town",
                    "{n} is a market town",
                    "{n} is an old town",
                ),
                asides=(
                    "Its market square is paved with round pebbles.",
                    "Most of the houses have red roofs.",
                    "The night watch still rings a bell at ten.",
                    "Storks nest on the chimneys every spring.",
                    "Its gates are shut at dusk.",
                ),
            ),
            EntityType(
                name="river",
                plural="rivers",
                core=_WORD,
                aliases=("River {n}", "{n}"),
                surfaces=("the River {n}", "the {n}"),
                later=("The river", "It"),
                openings=(
                    "The River {n} is a slow river",
                    "The River {n} is a shallow river",
                    "The River {n} is a winding river",
                ),
                asides=(
                    "In dry summers it can be waded.",
                    "Mills once stood along both banks.",
                    "The water turns brown after rain.",
                    "Children skate on it in hard frosts.",
                ),
            ),
            EntityType(
                name="person",
                plural="people",
                core=f"{_WORD} {_WORD}",
                aliases=("{n}",),
                surfaces=("{n}",),
                later=(),
                openings=(),
                asides=(
                    "Few portraits survive.",
                    "Letters from those years are kept in a tin box.",
                    "A statue was planned but never paid for.",
                    "Friends spoke of a dry wit and a love of plain food.",
                ),
            ),
            EntityType(
                name="guild",
                plural="guilds",
                core=f"{_WORD} {_WORD}",
                aliases=("{n} Guild", "Guild of the {n}", "{n}"),
                surfaces=("the {n} Guild", "the Guild of the {n}"),
                later=("The guild", "It"),
                openings=(
                    "The {n} Guild is an old guild",
                    "The {n} Guild is a small guild",
                    "The Guild of the {n} is a rich guild",
                ),
                asides=(
                    "New members swear an oath on a loaf of bread.",
                    "The rules fill a thick green book.",
                    "Quarrels are settled over a long supper.",
                    "Widows of members are given firewood.",
                ),
            ),
            EntityType(
                name="ship",
                plural="ships",
                core=f"{_WORD} {_WORD}",
                aliases=("{n}",),
                surfaces=("the {n}", "the ship {n}"),
                later=("The ship", "It"),
                openings=(
                    "The {n} is a broad ship",
                    "The {n} is a fast ship",
                    "The {n} is a merchant ship",
                ),
                asides=(
                    "The hull is tarred every autumn.",
                    "A carved head looks out from the bow.",
                    "In calm weather the crew row.",
                    "Rats are kept down by two cats.",
                ),
            ),
            EntityType(
                name="fair",
                plural="fairs",
                core=f"{_WORD} {_WORD}",
                aliases=("{n} Fair", "Fair of the {n}", "{n}"),
                surfaces=("the {n} Fair", "the Fair of the {n}"),
                later=("The fair", "It"),
                openings=(
                    "The {n} Fair is a lively fair",
                    "The {n} Fair is a yearly fair",
                    "The Fair of the {n} is a country fair",
                ),
                asides=(
                    "Stalls sell hot chestnuts and ribbon.",
                    "There is dancing until the lamps burn out.",
                    "Rain has never stopped it.",
                    "Every child is given a small cake.",
                ),
            ),
            EntityType(
                name="book",
                plural="books",
                core=f"{_WORD} of {_WORD}",
                aliases=("{n}",),
                surfaces=("the book {n}", "{n}"),
                later=("The book", "It"),
                openings=("{n} is a short book", "{n} is a learned book", "{n} is a popular book"),
                asides=(
                    "Only a handful of copies have the coloured plates.",
                    "Students were made to learn parts by heart.",
                    "The last chapter is a joke.",
                    "One copy was eaten by mice.",
                ),
            ),
            EntityType(
                name="bridge",
                plural="bridges",
                core=_WORD,
                aliases=("{n} Bridge", "{n}"),
                surfaces=("{n} Bridge",),
                later=("The bridge", "It"),
                openings=(
                    "{n} Bridge is a low bridge",
                    "{n} Bridge is a handsome bridge",
                    "{n} Bridge is an arched bridge",
                ),
                asides=(
                    "A toll of one penny was taken until lately.",
                    "Carts must cross one at a time.",
                    "Swallows live under the arches.",
                    "Lovers hang small locks on the rail.",
                ),
            ),
        )
    }
)

# The trade of a person opens the passage, so that its statement is a whole sentence start.
PERSON_OPENINGS: Final = ("{n} is a {y}", "{n} works as a {y}", "{n} is known as a {y}")
