"""Text rules: answer normalisation, query keys and search tokens.

Three readings of a string that must never be mixed up: what makes two answers equal (SPEC
section 2), what makes two queries a repeat (section 3) and what a search matches (section 6).
Every function has a shortcut for ASCII, where NFKC changes nothing and case folding is lower case.
"""

import re
import string
import unicodedata
from typing import Literal

Rules = Literal["unicode", "squad"]
RULES: tuple[Rules, ...] = ("unicode", "squad")

_ARTICLES = frozenset({"a", "an", "the"})
_SQUAD_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_WORD = re.compile(r"[a-z0-9]+")


class _Translation(dict[int, str | None]):
    """`str.translate` table that decides each code point once, when it is first met."""

    def __init__(self, default: str | None, *categories: str):
        super().__init__()
        self._default = default
        self._categories = categories


class _Deleted(_Translation):
    """Deletes every character of the given major categories."""

    def __missing__(self, code: int) -> str | None:
        keep = chr(code)
        self[code] = self._default if unicodedata.category(keep)[0] in self._categories else keep
        return self[code]


class _Kept(_Translation):
    """Keeps the characters of the given major categories and turns all others into the default."""

    def __missing__(self, code: int) -> str | None:
        keep = chr(code)
        self[code] = keep if unicodedata.category(keep)[0] in self._categories else self._default
        return self[code]


_DELETE_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DELETE_PUNCTUATION = _Deleted(None, "P")
_DELETE_PUNCTUATION.update(dict.fromkeys(map(ord, string.punctuation)))
_TOKEN_CHARACTERS = _Kept(" ", "L", "N", "M")


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def normalise(text: str, rules: str = "unicode") -> str:
    """Normal form of an answer; answers are the same when their normal forms are equal.

    Args:
        text: an answer or a gold answer.
        rules: `unicode` folds compatibility forms and case and deletes all punctuation; articles
            stay when nothing else would be left. `squad` is the published SQuAD / HotpotQA recipe
            to the letter. One run uses one of them.

    Returns:
        Words joined by single spaces; "" is EMPTY, which under `unicode` equals nothing.

    Raises:
        ValueError: no such set of rules.
    """
    if rules == "squad":
        bare = text.lower().translate(_DELETE_ASCII_PUNCTUATION)
        return " ".join(_SQUAD_ARTICLES.sub(" ", bare).split())
    if rules != "unicode":
        raise ValueError(f"answer rules are one of {', '.join(RULES)}, not {rules!r}")
    if text.isascii():
        words = text.lower().translate(_DELETE_ASCII_PUNCTUATION).split()
    else:
        words = _nfkc(_nfkc(text).casefold()).translate(_DELETE_PUNCTUATION).split()
    return " ".join([word for word in words if word not in _ARTICLES] or words)


def answer_tokens(text: str) -> int:
    """Number of white-space tokens; 0 exactly when the text is blank."""
    return len(text.split())


def query_key(text: str) -> str:
    """What two repeated queries have in common: NFKC, case folded, white space collapsed.

    Returns "" exactly when the query is blank.
    """
    folded = text.lower() if text.isascii() else _nfkc(text).casefold()
    return " ".join(folded.split())


def tokens(text: str) -> list[str]:
    """Search tokens in order, repeats kept: maximal runs of letters, numbers and marks."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _nfkc(text).casefold().translate(_TOKEN_CHARACTERS).split()
