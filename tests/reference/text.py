"""The four ways in which strings are read: answers, queries, passages, lengths."""

import re
import string
import unicodedata
from functools import cache

ARTICLES = ("a", "an", "the")


def is_blank(text: str | None) -> bool:
    """Whether there is no character that is not white space."""
    return text is None or not text.split()


@cache
def normalise(text: str, rules: str = "unicode") -> str:
    """The normal form of an answer; "" is EMPTY."""
    if rules == "unicode":
        return normalise_unicode(text)
    if rules == "squad":
        return normalise_squad(text)
    raise ValueError(f"no such rules: {rules}")


def normalise_unicode(text: str) -> str:
    """NFKC, casefold, NFKC, no punctuation, no articles unless that leaves nothing."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(c for c in folded if not is_punctuation(c))
    words = kept.split()
    without_articles = [word for word in words if word not in ARTICLES]
    return " ".join(without_articles or words)


def is_punctuation(character: str) -> bool:
    """ASCII punctuation (which holds symbols such as $ and +) or any category P*."""
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def normalise_squad(text: str) -> str:
    """The published recipe, step by step and in its order."""
    text = text.lower()
    text = "".join(c for c in text if c not in string.punctuation)
    text = re.sub(r"\b(a|an|the)\b", " ", text)
    return " ".join(text.split())


def query_key(query: str) -> str:
    """Two searches repeat each other when these are equal."""
    return " ".join(unicodedata.normalize("NFKC", query).casefold().split())


def tokens(text: str) -> list[str]:
    """Maximal runs of letters, numbers and marks of the folded text, in order."""
    found: list[str] = []
    run = ""
    for character in unicodedata.normalize("NFKC", text).casefold():
        if unicodedata.category(character)[0] in "LNM":
            run += character
        elif run:
            found.append(run)
            run = ""
    if run:
        found.append(run)
    return found
