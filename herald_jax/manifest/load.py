"""A TOML file into a `Manifest`, or one error that lists everything wrong with the file."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from herald_jax.manifest.config import Contract, Instance, Manifest, Section, SettingError
from herald_jax.manifest.rules import Problem, listed, nearest, shown
from herald_jax.types import Fault, ManifestError

SECTIONS: dict[str, type[Section]] = {
    item.name: item.metadata["rule"].kind
    for item in fields(Manifest)
    if isinstance(item.metadata["rule"], Instance)
}
TABLES = (*SECTIONS, "contracts")


def load_manifest(path: str | PathLike[str]) -> Manifest:
    """Read and check a manifest; settings that the file leaves out keep their defaults.

    Raises:
        ManifestError: the file cannot be read, is not TOML, or has settings that are unknown, of a
            wrong type or out of range; the message has one line for each problem.
    """
    name = fspath(path)
    return parse_manifest(read_toml(name), name)


def parse_manifest(document: Mapping[str, object], name: str) -> Manifest:
    """Check a manifest that is already a dictionary; `name` stands in errors for its file."""
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    for key, table in document.items():
        if key == "contracts":
            parts[key] = read_contracts(table, problems)
        elif key in SECTIONS:
            made = read_table(SECTIONS[key], table, key, problems)
            if made is not None:
                parts[key] = made
        else:
            problems.append(unknown_table(key))
    manifest: Manifest | None = None
    try:
        manifest = Manifest(**parts)
    except SettingError as error:
        problems.extend(error.problems)
    if problems or manifest is None:
        raise ManifestError("\n".join(str(problem.in_file(name)) for problem in problems))
    return manifest


def read_toml(name: str) -> dict[str, object]:
    """The file as a dictionary.

    Raises:
        ManifestError: unreadable, not UTF-8 or not TOML.
    """
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except OSError as error:
        fault = Fault(
            name,
            0,
            "",
            "unreadable",
            "a readable TOML file",
            error.strerror or "an error",
            "check the path; `herald manifest` prints a file to start from",
        )
    except UnicodeDecodeError as error:
        fault = Fault(
            name, 0, "", "not_utf8", "UTF-8", f"a stray byte at {error.start}", "save as UTF-8"
        )
    except tomllib.TOMLDecodeError as error:
        fault = Fault(name, 0, "", "not_toml", "TOML", str(error), "correct the syntax")
    raise ManifestError(str(fault))


def read_table(
    kind: type[Section],
    table: object,
    key: str,
    problems: list[Problem],
    sections: Mapping[str, type[Section]] = SECTIONS,
) -> Section | None:
    """One section, or None after its problems were added to `problems`.

    `sections` are all of the file, for a key that belongs to another one.
    """
    if not isinstance(table, Mapping):
        problems.append(
            Problem(
                key,
                "wrong_type",
                f"a table [{key}]",
                shown(table),
                f"write [{key}] on its own line",
            )
        )
        return None
    # Every section is a dataclass; the base class, which mypy sees, is none.
    known = tuple(item.name for item in fields(kind))  # type: ignore[arg-type]
    unknown = [name for name in table if name not in known]
    problems.extend(unknown_key(name, key, known, sections) for name in unknown)
    try:
        made = kind(**{name: value for name, value in table.items() if name in known})
    except SettingError as error:
        problems.extend(problem.under(key) for problem in error.problems)
        return None
    return None if unknown else made


def read_contracts(table: object, problems: list[Problem]) -> object:
    """The user's contracts; tables that are not contracts are reported and left out."""
    if not isinstance(table, Mapping):
        return table
    made = {
        name: read_table(Contract, body, f"contracts.{name}", problems)
        for name, body in table.items()
    }
    return {name: contract for name, contract in made.items() if contract is not None}


def unknown_table(
    key: str, tables: Sequence[str] = TABLES, sections: Mapping[str, type[Section]] = SECTIONS
) -> Problem:
    """A key at the top of the file that is no section."""
    owners = listed(f"[{section}]" for section in sections_with(key, sections))
    close = nearest(key, tables)
    if owners:
        remedy = f"move it under {owners}"
    elif close:
        remedy = f"did you mean `{close}`?"
    else:
        remedy = "remove it"
    return Problem(key, "unknown_key", f"a table among {listed(tables)}", f"`{key}`", remedy)


def unknown_key(
    name: str, section: str, known: tuple[str, ...], sections: Mapping[str, type[Section]]
) -> Problem:
    """A key that its section does not have."""
    close = nearest(name, known)
    owners = listed(f"[{owner}]" for owner in sections_with(name, sections))
    if close:
        remedy = f"did you mean `{close}`?"
    elif owners:
        remedy = f"move it under {owners}"
    else:
        remedy = "remove it"
    return Problem(
        f"{section}.{name}", "unknown_key", f"a key among {listed(known)}", f"`{name}`", remedy
    )


def sections_with(name: str, sections: Mapping[str, type[Section]]) -> Iterator[str]:
    """Sections that have a setting called `name`."""
    for section, kind in sections.items():
        if any(item.name == name for item in fields(kind)):  # type: ignore[arg-type]
            yield section
