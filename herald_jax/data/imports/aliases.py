"""Other names of 2WikiMultihopQA's answers: `id_aliases.json`, which is JSON Lines in spite of it.

The benchmark's own evaluation takes the aliases and the demonyms of the answer's Wikidata id as
gold answers beside the answer itself.
"""

from collections.abc import Collection
from pathlib import Path

import msgspec

from herald_jax.data.jsonl import read_jsonl
from herald_jax.data.records import Id
from herald_jax.data.regular import require_regular
from herald_jax.types import Fault


class _Names(msgspec.Struct, gc=False):
    Q_id: Id
    aliases: list[str]
    demonyms: list[str]


def read_aliases(
    path: Path | str, wanted: Collection[str], faults: list[Fault]
) -> dict[str, list[str]]:
    """Names of the wanted ids, in the order of the file; of an id with two lines, both.

    Raises:
        OSError: the file cannot be read.
    """
    require_regular(path)
    names: dict[str, list[str]] = {}
    for batch in read_jsonl(path, _Names):
        faults += batch.faults
        for row in batch.records:
            if row.Q_id in wanted:
                names.setdefault(row.Q_id, []).extend([*row.aliases, *row.demonyms])
    return names
