"""A report on what an audit has finished so far, while it still runs or after it was stopped.

An audit writes down at its start what it is about; with that and the results of the sections that
are done, a report is put together in another process, without the logs. It holds no worst
attacks, whose text lies in the logs, and says of itself that it is partial.
"""

from pathlib import Path
from typing import Any

import msgspec

from herald_jax.audit.assemble import Assembly
from herald_jax.audit.report import Report
from herald_jax.manifest import Manifest, parse_manifest
from herald_jax.manifest.contracts import build_contracts
from herald_jax.pool.store import Entry, Folder, Store
from herald_jax.types import HeraldError

NAME = "audit"
KEY = "audit 1"


class Beginning(msgspec.Struct):
    """What an audit is about.

    Attributes:
        manifest: every setting.
        described: what the report says of settings and inputs.
        scale: fixed point of the margins.
        external_base: whether the base reward is given as numbers.
        operator_fields: what each operator reads and writes.
        key: under which results of sections are kept.
        rows: rows of each section.
    """

    manifest: dict[str, Any]
    described: dict[str, Any]
    scale: float
    external_base: bool
    operator_fields: dict[str, dict[str, Any]]
    key: str
    rows: list[int]


def section_name(number: int) -> str:
    """Under which the result of a section is kept."""
    return f"section-{number:05d}"


def section_key(key: str, number: int) -> str:
    """The key of a section's result: no other section's is taken for it."""
    return f"{key}/{number}"


def write_beginning(store: Store, beginning: Beginning) -> None:
    """Write down what an audit is about."""
    store.put(NAME, KEY, {}, {"beginning": msgspec.to_builtins(beginning)})


def partial_report(folder: Path) -> Report:
    """The report on the sections that are done in a work folder.

    Raises:
        HeraldError: no audit has begun there, or no section is done.
    """
    refused: list[str] = []
    store = Folder(folder, refused.append)
    entry = store.get(NAME, KEY)
    if refused:
        raise HeraldError(f"{refused[0]}: the audit must be run again for a partial report")
    if entry is None:
        raise HeraldError(
            f"{folder}: no audit has come as far as its first section here; "
            "name the folder of `herald audit --work`, or OUT/work of a large audit"
        )
    found = msgspec.convert(entry.meta["beginning"], Beginning)
    results: list[Entry] = []
    rows = 0
    for number, size in enumerate(found.rows):
        result = store.get(section_name(number), section_key(found.key, number), check=True)
        if result is not None:
            results.append(result)
            rows += size
    if not results:
        raise HeraldError(f"{folder}: no section is done yet, of {len(found.rows)}; try again")
    manifest: Manifest = parse_manifest(found.manifest, str(folder))
    assembly = Assembly(
        results,
        manifest,
        build_contracts(manifest),
        found.scale,
        external_base=found.external_base,
        operator_fields=found.operator_fields,
    )
    progress = {
        "sections": len(results),
        "of_sections": len(found.rows),
        "rows": rows,
        "of_rows": sum(found.rows),
    }
    return Report(found.described | {"partial": progress} | assembly.contents([]))
