"""A manifest as plain data, as a digest, and as a commented TOML file."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from textwrap import dedent

from herald_jax.manifest.config import Manifest, Section
from herald_jax.manifest.load import SECTIONS

HEAD = """\
# Settings of a HERALD-JAX audit. Every line is a default: keep those you want to change.
# An unknown key or a value of a wrong type is an error that names the nearest valid name.
# SPEC is the file docs/SPEC.md of the HERALD-JAX sources: what every figure means.
"""

CONTRACTS = """
# Rewards of your own, linear in the features and detectors named above: the table's name is the
# contract's. `base = true` adds R0. Penalties are subtracted.
#
# [contracts.grounded_only]
# base = false
# weights = { answer = 1.0, grounding = 0.5 }
# penalties = { cited_not_retrieved = 1.2 }
"""


def manifest_dict(manifest: Manifest) -> dict[str, object]:
    """Every setting used as JSON-able data: tables are dictionaries, tuples are lists."""
    return {item.name: plain(getattr(manifest, item.name)) for item in fields(manifest)}


def plain(value: object) -> object:
    """Sections and mappings into dictionaries, tuples into lists; the rest stays."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def manifest_digest(manifest: Manifest) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of `manifest_dict`.

    Canonical: keys in code-point order, no white space, ASCII with `\\uXXXX` escapes, floats as the
    shortest decimal that reads back the same (Python's `repr`), UTF-8. The order in which contracts
    were written does not matter; the order inside lists does.
    """
    text = json.dumps(
        manifest_dict(manifest), sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def default_toml() -> str:
    """The defaults as a TOML file with one comment a setting; reading it gives `Manifest()`."""
    tables = [block for name, kind in SECTIONS.items() for block in toml_table(name, kind)]
    return HEAD + "".join(tables) + CONTRACTS


def toml_table(name: str, kind: type[Section]) -> Iterator[str]:
    """One section as lines of TOML."""
    yield f"\n# {' '.join(dedent(kind.__doc__ or '').split())}\n[{name}]\n"
    for item in fields(kind):  # type: ignore[arg-type]
        yield f"{item.name} = {toml_value(item.default)}  # {item.metadata['explanation']}\n"


def toml_value(value: object) -> str:
    """A default as TOML. Strings here are names: JSON's quoting is TOML's."""
    if isinstance(value, tuple):
        inside = ", ".join(toml_value(item) for item in value)
        return f"[{inside}]"
    return json.dumps(value)
