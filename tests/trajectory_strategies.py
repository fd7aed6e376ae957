"""Hypothesis strategies for trajectories as the kernels may meet them.

Ids repeat, are of no passage, or are absent; a list may be empty; steps may not have been searches;
answers are missing or blank; support lies outside the corpus.
"""

from hypothesis import strategies as st
from trajectory_arrays import Row, Rows

PASSAGES = tuple(f"p{number:03}" for number in range(40))
# None of these is a passage, whatever the corpus; some differ from one by a hair.
FOREIGN = ("", "P001", "p1", " p001", "x", "zzz", "fake:t")
WORDS = ("", "yes", "mill wheel", "the mill", "Mill", "grain and mill", "the", "7")
QUERIES = ("mill wheel", " MILL  wheel ", "grain", "", " \t", "7", "\uff17")


def ids(most: int, corpus=PASSAGES[:8]):
    """Lists of ids, repeats and strangers among them."""
    names = st.sampled_from(corpus) if corpus else st.nothing()
    return st.lists(names | names | st.sampled_from(FOREIGN), max_size=most)


def codes(most: int, highest: int = 12):
    """Lists of codes: passages, strangers and PAD, repeats among them."""
    return st.lists(st.integers(-1, highest), max_size=most)


def pages(longest: int):
    """A page of results: consecutive ids, so that a long list takes few draws."""
    every = PASSAGES + FOREIGN
    return st.builds(
        lambda first, count: [every[(first + i) % len(every)] for i in range(count)],
        st.integers(0, len(every) - 1),
        st.integers(0, longest),
    )


def steps(results):
    return st.fixed_dictionaries(
        {
            "query": st.sampled_from(QUERIES),
            "retrieved": results,
            "valid": st.sampled_from((True, True, True, False)),
        }
    )


def golds():
    return st.fixed_dictionaries(
        {
            "answers": st.lists(st.sampled_from(WORDS), max_size=2),
            "support_ids": ids(4).map(lambda names: list(dict.fromkeys(names))),
        }
    )


def trajectories(steps_of):
    return st.fixed_dictionaries(
        {
            "trajectory_id": st.just("t"),
            "question_id": st.just("q"),
            "question": st.just("?"),
            "steps": steps_of,
            "answer": st.none() | st.sampled_from(WORDS),
            "citations": ids(8),
            "malformed_citations": st.sampled_from((0, 0, 0, 1, 2)),
        }
    )


def blocks(rows: int, *, wide: bool = False):
    """`Rows` of a fixed number of trajectories; up to 16 retrieved ids each, or 96 when wide."""
    results = pages(24) if wide else ids(4)
    steps_of = st.lists(steps(results), max_size=4)
    if not wide:
        # One more way to few ids: no search, or a search more than is allowed.
        idle = steps(st.just([]))
        steps_of = steps_of | st.lists(idle, min_size=5, max_size=6)
    one = st.builds(Row, trajectories(steps_of), golds())
    corpus = st.sampled_from((8, 8, 8, 40, 5, 1, 0)).map(lambda size: PASSAGES[:size])
    return st.builds(
        lambda passages, drawn: Rows(passages, tuple(drawn)),
        corpus,
        st.lists(one, min_size=rows, max_size=rows),
    )
