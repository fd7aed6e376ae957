"""The records of the three kinds of file (SPEC section 1).

The classes are the schema: the JSONL and Parquet readers, the Parquet writer and the error
messages are all derived from their fields. Unknown keys of a file are ignored. Oracle labels are a
record of their own and are never part of a `Trajectory`.

Three states of a list stay apart everywhere: a value, an empty list (nothing was cited, the search
returned nothing) and None (not logged).
"""

from typing import Annotated, TypeAlias

import msgspec

# Compared exactly, as strings. A JSON integer stands for its decimal digits.
Id: TypeAlias = Annotated[str, msgspec.Meta(extra={"reads": "id"})]
# A bare string in the file is one gold answer.
Golds: TypeAlias = Annotated[list[str], msgspec.Meta(extra={"reads": "golds"})]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Step(msgspec.Struct, gc=False):
    """One action before the final: a search when valid and not blank, else an invalid action."""

    query: str
    retrieved: list[Id] | None = None
    valid: bool = True

    @property
    def executed(self) -> bool:
        """Whether this step is an executed search; any other step returned nothing."""
        return self.valid and self.query.strip() != ""


class Trajectory(msgspec.Struct, gc=False):
    """One rollout of an agent on one question: what anyone can see of it."""

    trajectory_id: Id
    question_id: Id
    question: str
    steps: list[Step]
    answer: str | None
    citations: list[Id] | None = None
    model: str = ""
    pool: str = ""
    rollout: Int64 = 0
    selected: bool = False
    malformed_citations: Count = 0
    generated_tokens: Count | None = None
    candidates: list[Id] | None = None  # passages that the log proposes for laundering, best first

    @property
    def logged(self) -> bool:
        """Whether the citations and the results of every executed search were recorded."""
        return self.citations is not None and all(
            step.retrieved is not None for step in self.steps if step.executed
        )


class Passage(msgspec.Struct, gc=False):
    """One passage of the closed corpus."""

    passage_id: Id
    text: str
    title: str = ""


class Node(msgspec.Struct, gc=False):
    """One step of reasoning of a question, with the passages that support it."""

    node_id: Id
    depends_on: list[Id]
    support_ids: list[Id]
    answers: Golds


class OracleRow(msgspec.Struct, gc=False):
    """Gold labels of one question."""

    question_id: Id
    answers: Golds
    support_ids: list[Id]
    nodes: list[Node] = []


ID_FIELDS: dict[type[msgspec.Struct], str] = {
    Trajectory: "trajectory_id",
    Passage: "passage_id",
    OracleRow: "question_id",
}
