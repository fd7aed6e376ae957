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


class _Replacement(dict[int, str | None]):
    """Table for `str.translate`, filled as code points are met: those of some categories change."""

    def __init__(self, categories: str, replacement: str | None):
        super().__init__()
        self._categories = categories
        self._replacement = replacement

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        changes = unicodedata.category(character)[0] in self._categories
        self[code] = self._replacement if changes else character
        return self[code]


_DELETE_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DELETE_PUNCTUATION = _Replacement("P", None)
_DELETE_PUNCTUATION.update(dict.fromkeys(map(ord, string.punctuation)))
# All but letters (L), numbers (N) and marks (M): punctuation, symbols, separators, others.
_SEPARATE_TOKENS = _Replacement("PSZC", " ")


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
    require_rules(rules)
    if text.isascii():
        words = text.lower().translate(_DELETE_ASCII_PUNCTUATION).split()
    else:
        words = _nfkc(_nfkc(text).casefold()).translate(_DELETE_PUNCTUATION).split()
    return " ".join([word for word in words if word not in _ARTICLES] or words)


def require_rules(rules: str) -> None:
    """Refuse the name of rules that there are not.

    Raises:
        ValueError: no such set of rules.
    """
    if rules not in RULES:
        raise ValueError(f"answer rules are one of {', '.join(RULES)}, not {rules!r}")


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
    return _nfkc(text).casefold().translate(_SEPARATE_TOKENS).split()
