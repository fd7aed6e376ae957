"""Exact match and F1 of many answers against the golds of many questions, in whole columns.

The same figures, to the bit, as counting words one pair at a time: words become integers, lists of
words stay lists, and the words that an answer and a gold have in common are counted by sorting.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from herald_jax.data.ragged import Int32, Ragged
from herald_jax.data.strings import encoded
from herald_jax.data.text import require_rules
from herald_jax.data.words import ARTICLES, codes_in, normal_words, without_articles

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_CLOSED = ("yes", "no", "noanswer")
_FIXED = (*ARTICLES, *_CLOSED)  # these words have the lowest codes
_PAIRS = 1 << 18  # pairs that are worked at a time, to bound memory


class Golds:
    """Gold answers of Q questions, their words as integers.

    Args:
        golds: Q lists of gold answers.
        rules: see `normalise`.

    Raises:
        ValueError: no such set of rules.
    """

    def __init__(self, golds: Sequence[Sequence[str]], rules: str) -> None:
        require_rules(rules)
        self._rules = rules
        self._gold_of = np.cumsum([0, *map(len, golds)], dtype=np.int64)
        texts = pa.array(list(chain.from_iterable(golds)), pa.string())
        found = normal_words(texts, rules)
        words = pa.concat_arrays([pa.array(_FIXED, pa.string()), found.words])
        codes, self._vocabulary = encoded(words)
        self._golds = self._lists(codes[len(_FIXED) :], found.offsets)

    def scores(self, answers: pa.Array, answer: Int32, question: Int32) -> tuple[Float64, Float64]:
        """Exact match and F1 of pairs of an answer and a question, each distinct pair once.

        Args:
            answers: A answers, plain strings without null.
            answer: int32 [P] index of each pair's answer, -1 for none.
            question: int32 [P] index of each pair's question.

        Returns:
            Exact match and F1, float64 [P] each; 0 without an answer and without golds.
        """
        found = normal_words(answers, self._rules)
        ours = self._lists(codes_in(found, self._vocabulary), found.offsets)
        distinct, back = np.unique(
            question.astype(np.int64) << 32 | answer + 1, return_inverse=True
        )
        em, f1 = np.zeros(len(distinct)), np.zeros(len(distinct))
        counts = np.diff(self._gold_of)[distinct >> 32]
        scored = np.flatnonzero((counts > 0) & (distinct & 0xFFFFFFFF > 0))
        for start in range(0, len(scored), _PAIRS):
            part = scored[start : start + _PAIRS]
            begins = np.cumsum(counts[part]) - counts[part]
            within = np.arange(counts[part].sum()) - np.repeat(begins, counts[part])
            gold = np.repeat(self._gold_of[distinct[part] >> 32], counts[part]) + within
            answered = np.repeat((distinct[part] & 0xFFFFFFFF) - 1, counts[part])
            same, overlap = self._compare(ours, answered, gold)
            em[part] = np.maximum.reduceat(same, begins)
            f1[part] = np.maximum.reduceat(overlap, begins)
        return em[back], f1[back]

    def _lists(self, codes: Int32, offsets: Int64) -> Ragged:
        return Ragged(*without_articles(codes, offsets, unless_all=self._rules == "unicode"))

    def _compare(self, ours: Ragged, answer: Int64, gold: Int64) -> tuple[Float64, Float64]:
        """Exact match and F1 of an answer and a gold each, float64 [len(gold)]."""
        a, g = ours.take(answer), self._golds.take(gold)
        n_answer, n_gold = a.lengths, g.lengths
        shared = _in_common(a, g)
        total = n_answer + n_gold
        same = (n_answer == n_gold) & (shared == n_gold)
        equal = np.flatnonzero(same)
        x, y = a.take(equal), g.take(equal)  # the same bag of words; in the same order?
        differ = np.bincount(_owners(x)[x.values != y.values], minlength=len(equal)) > 0
        same[equal[differ]] = False
        if self._rules == "unicode":
            same &= total > 0
        f1 = np.where(shared > 0, 2 * shared / np.maximum(total, 1), 0.0)
        closed = _closed(a) | _closed(g)
        f1[closed] = same[closed]
        return same.astype(np.float64), f1


def _closed(lists: Ragged) -> Bool:
    """bool [n]: whether a list is one word that is right or wrong, never partly right."""
    one = np.flatnonzero(lists.lengths == 1)
    word = lists.values[lists.offsets[one]]
    out = np.zeros(len(lists), bool)
    out[one] = (word >= len(ARTICLES)) & (word < len(_FIXED))
    return out


def _owners(lists: Ragged) -> Int64:
    """int64 [total]: the list that each entry is in."""
    return np.repeat(np.arange(len(lists)), lists.lengths)


def _in_common(a: Ragged, g: Ragged) -> Int64:
    """int64 [n]: words that two lists share, each as often as in both; -1 is shared with nobody.

    Sorted by list and word, the entries of both lie in runs; of each run the smaller side counts.
    """
    known = a.values >= 0
    keys = np.concatenate(
        [
            _owners(a)[known] << 33 | a.values[known].astype(np.int64) << 1,
            _owners(g) << 33 | g.values.astype(np.int64) << 1 | 1,
        ]
    )
    keys.sort()
    run = np.flatnonzero(np.diff(keys >> 1, prepend=-1))
    theirs = np.add.reduceat(keys & 1, run) if len(run) else np.zeros(0, np.int64)
    smaller = np.minimum(theirs, np.diff(run, append=len(keys)) - theirs)
    some = smaller > 0
    return np.bincount(keys[run[some]] >> 33, weights=smaller[some], minlength=len(a)).astype(
        np.int64
    )
