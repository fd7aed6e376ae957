"""Understanding the world's language: questions back into terms, passages back into facts.

This is what a scripted agent knows of the world besides what it retrieves: the wordings, not the
facts. It sees the text alone, and finds nothing in a text that does not state it.
"""

import re
from functools import cache
from itertools import product

from herald_jax.world.entities import TYPES
from herald_jax.world.relations import BOTH, IN_ORDER, RELATIONS, Relation
from herald_jax.world.terms import Both, Every, Follow, Named, Term
from herald_jax.world.words import COUNT_WORDS

# Where one statement of a passage ends and the next begins.
_BETWEEN_STATEMENTS = re.compile(r"\.(?: |$)|, and (?:it )?")
_LITERAL = "[A-Za-z0-9]+"
_HILL = "[A-Z][a-z]+ [A-Z][a-z]+"


def parse(question: str) -> Term | None:
    """The term that a question asks for; None when it is not worded as this world's are."""
    for pattern, relation in _asks():
        if (match := pattern.fullmatch(question)) and (
            inner := _noun_phrase(match[1], relation.subject)
        ):
            return Follow(relation.name, inner)
    for pattern, relation in _everys():
        if match := pattern.fullmatch(question):
            counts = {word: count for count, word in COUNT_WORDS.items()}
            value = _named(match["x"], relation.object)
            if value and match["n"] in counts:
                return Every(relation.name, value, counts[match["n"]])
    for pattern, left, right in _boths():
        if match := pattern.fullmatch(question):
            a = _noun_phrase(match["a"], left.subject)
            b = _noun_phrase(match["b"], right.subject)
            if a and b:
                return Both(Follow(left.name, a), Follow(right.name, b))
    return None


def read(text: str, relation: str) -> tuple[Named | str, ...]:
    """Values of `relation` that a passage states of its subject; () when it states none.

    Entities come as `Named`, literals as strings, lists in the order of the text.
    """
    kind = RELATIONS[relation].object
    for statement in _BETWEEN_STATEMENTS.split(text):
        for pattern in _states(relation):
            if match := pattern.search(statement):
                if kind not in TYPES:
                    return (match[1],)
                names = re.split(", | and ", match[1])
                return tuple(value for name in names if (value := _named(name, kind)))
    return ()


def _named(text: str, kind: str) -> Named | None:
    """The entity of type `kind` that a surface form or title names."""
    for pattern in _surfaces(kind):
        if match := pattern.fullmatch(text):
            return Named(kind, match[1])
    return None


def _noun_phrase(text: str, kind: str) -> Named | Follow | None:
    for pattern, relation in _phrases(kind):
        if (match := pattern.fullmatch(text)) and (
            inner := _noun_phrase(match[1], relation.subject)
        ):
            return Follow(relation.name, inner)
    return _named(text, kind)


def _compile(template: str, **groups: str) -> re.Pattern[str]:
    """Pattern of a template with `{name}` replaced by the given groups."""
    pattern = re.escape(template)
    for name, group in groups.items():
        pattern = pattern.replace(re.escape(f"{{{name}}}"), group)
    return re.compile(pattern)


@cache
def _surfaces(kind: str) -> tuple[re.Pattern[str], ...]:
    forms = (*TYPES[kind].surfaces, *TYPES[kind].aliases)
    return tuple(_compile(form, n=f"({TYPES[kind].core})") for form in dict.fromkeys(forms))


@cache
def _phrases(kind: str) -> tuple[tuple[re.Pattern[str], Relation], ...]:
    return tuple(
        (_compile(phrase, x="(.+)"), relation)
        for relation in RELATIONS.values()
        if relation.object == kind
        for phrase in relation.phrases
    )


@cache
def _asks() -> tuple[tuple[re.Pattern[str], Relation], ...]:
    return tuple(
        (_compile(ask, x="(.+)"), relation)
        for relation in RELATIONS.values()
        for ask in relation.asks
    )


@cache
def _everys() -> tuple[tuple[re.Pattern[str], Relation], ...]:
    return tuple(
        (_compile(relation.every + IN_ORDER, n="(?P<n>[a-z]+)", x="(?P<x>.+)"), relation)
        for relation in RELATIONS.values()
        if relation.every
    )


@cache
def _boths() -> tuple[tuple[re.Pattern[str], Relation, Relation], ...]:
    lists = [relation for relation in RELATIONS.values() if relation.member]
    return tuple(
        (
            _compile(
                both.format(a=left.member.format(x="{l}"), b=right.member.format(x="{r}")),
                l="(?P<a>.+)",
                r="(?P<b>.+)",
            ),
            left,
            right,
        )
        for both, left, right in product(BOTH, lists, lists)
    )


@cache
def _states(relation: str) -> tuple[re.Pattern[str], ...]:
    kind = RELATIONS[relation].object
    value = _HILL if kind == "hill" else _LITERAL
    if kind in TYPES:
        forms = (form.format(n=TYPES[kind].core) for form in TYPES[kind].surfaces)
        value = f"(?:{'|'.join(forms)})"
        if RELATIONS[relation].member:
            value = f"{value}(?:(?:, | and ){value})*"
    # The trade of a person is followed by the next statement, "who was born in ...".
    return tuple(
        re.compile(rf"(?:^|(?<= )){_compile(state, y=f'({value})').pattern}(?= who |$)")
        for state in RELATIONS[relation].states
    )
