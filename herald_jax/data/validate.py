"""All faults of all files at once, before anything is computed from them (`herald validate`)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from herald_jax.data.jsonl import first_keys
from herald_jax.data.near import near_id_warnings
from herald_jax.data.records import OracleRow, Passage, Trajectory
from herald_jax.data.sources import open_input
from herald_jax.data.tables import is_parquet, read_table, unreadable, without_clashes
from herald_jax.types import Fault

_NAMES: dict[str, type[msgspec.Struct]] = {
    "trajectories": Trajectory,
    "corpus": Passage,
    "oracle": OracleRow,
}


def validate_files(paths: Sequence[Path | str]) -> list[Fault]:
    """Check files of any kind, together as one pool.

    What a file holds is told by its name where that begins with trajectories, corpus or oracle,
    and by its keys otherwise. Ids must be distinct over all files of a kind.

    Args:
        paths: JSON Lines or Parquet files.

    Returns:
        Every fault, by kind of file, file and line, then the warnings; empty when all is well.
    """
    faults: list[Fault] = []
    files: dict[type[msgspec.Struct], list[Path | str]] = {kind: [] for kind in _NAMES.values()}
    for path in paths:
        try:
            kind = kind_of_file(path)
        except (OSError, pa.ArrowException) as error:
            faults.append(unreadable(str(path), error))
            continue
        if kind is None:
            faults.append(
                Fault(
                    file=str(path),
                    line=0,
                    field="",
                    code="unknown_kind",
                    expected="trajectories, a corpus or an oracle",
                    got="a name and keys of none of them",
                    remedy="begin the file's name with trajectories, corpus or oracle",
                )
            )
        else:
            files[kind].append(path)
    trajectories = without_clashes(read_table(files[Trajectory], Trajectory), Trajectory)
    corpus = without_clashes(read_table(files[Passage], Passage), Passage)
    oracle = without_clashes(read_table(files[OracleRow], OracleRow), OracleRow)
    return [
        *faults,
        *trajectories.faults,
        *corpus.faults,
        *oracle.faults,
        *near_id_warnings(trajectories, corpus, oracle),
    ]


def kind_of_file(path: Path | str) -> type[msgspec.Struct] | None:
    """Class of the records of a file, by its name or else by its keys; None when neither tells.

    Raises:
        OSError: the file cannot be read.
        pa.ArrowInvalid: a `.parquet` file is none.
    """
    for name, kind in _NAMES.items():
        if Path(path).name.startswith(name):
            return kind
    with open_input(path) as file:
        keys = set(pq.read_schema(file).names) if is_parquet(path) else first_keys(path)
    if "trajectory_id" in keys:
        return Trajectory
    if "passage_id" in keys:
        return Passage
    if {"question_id", "support_ids"} <= keys:
        return OracleRow
    return None
