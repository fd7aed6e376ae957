"""Hypothesis strategies for records."""

from hypothesis import strategies as st

from herald_jax.data.records import Node, OracleRow, Passage, Step, Trajectory

IDS = st.sampled_from(["p1", "p2", "p3", " p1", "007", "7", "é", "e\u0301", ""])
TEXT = st.text(st.sampled_from("abAB \t\u2028é?"), max_size=6)
LISTS = st.one_of(st.none(), st.lists(IDS, max_size=4))


def steps():
    return st.builds(Step, query=TEXT, retrieved=LISTS, valid=st.booleans())


def trajectories():
    return st.builds(
        Trajectory,
        trajectory_id=IDS,
        question_id=IDS,
        question=TEXT,
        steps=st.lists(steps(), max_size=4),
        answer=st.one_of(st.none(), TEXT),
        citations=LISTS,
        model=TEXT,
        pool=TEXT,
        rollout=st.integers(-(2**63), 2**63 - 1),
        selected=st.booleans(),
        malformed_citations=st.integers(0, 2**31 - 1),
        generated_tokens=st.one_of(st.none(), st.integers(0, 2**31 - 1)),
        candidates=LISTS,
    )


def passages():
    return st.builds(Passage, passage_id=IDS, text=TEXT, title=TEXT)


def oracle_rows():
    nodes = st.builds(
        Node,
        node_id=IDS,
        depends_on=st.lists(IDS, max_size=2),
        support_ids=st.lists(IDS, max_size=2),
        answers=st.lists(TEXT, max_size=2),
    )
    return st.builds(
        OracleRow,
        question_id=IDS,
        answers=st.lists(TEXT, max_size=3),
        support_ids=st.lists(IDS, max_size=3),
        nodes=st.lists(nodes, max_size=2),
    )
