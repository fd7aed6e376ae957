"""A TOML file into a `TrainConfig`, or one error that lists everything wrong with the file."""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from os import PathLike, fspath
from typing import Any

from herald_jax.manifest.config import Section, SettingError
from herald_jax.manifest.load import read_table, read_toml, unknown_table
from herald_jax.manifest.rules import Problem
from herald_jax.manifest.serialise import plain, toml_table
from herald_jax.train.config import TrainConfig
from herald_jax.types import ManifestError

SECTIONS: dict[str, type[Section]] = {
    item.name: item.metadata["rule"].kind for item in fields(TrainConfig)
}


def load_config(path: str | PathLike[str]) -> TrainConfig:
    """Read and check the settings of a run; what the file leaves out keeps its default.

    Raises:
        ManifestError: unreadable, not TOML, or settings that are unknown, of a wrong type or out of
            range; one line for each, with the nearest valid name.
    """
    name = fspath(path)
    return parse_config(read_toml(name), name)


def read_config(path: str | PathLike[str] | None, overrides: Sequence[str]) -> TrainConfig:
    """A file, or none, with single settings changed.

    Args:
        path: a TOML file; None is the defaults.
        overrides: `table.key=value`, the value as TOML has it; a bare word is a string.

    Raises:
        ManifestError: as `load_config`, or an override that is none.
    """
    document: dict[str, Any] = {} if path is None else read_toml(fspath(path))
    name = "the defaults" if path is None else fspath(path)
    for override in overrides:
        key, equals, text = override.partition("=")
        table, dot, field = key.strip().partition(".")
        if not (equals and dot and field):
            raise ManifestError(f"--set {override}: expected table.key=value")
        held = document.setdefault(table, {})
        # What is no table is told as such with everything else that is wrong.
        if isinstance(held, dict):
            held[field] = _toml_value(text.strip())
    return parse_config(document, f"{name} with --set" if overrides else name)


def _toml_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def parse_config(document: Mapping[str, object], name: str) -> TrainConfig:
    """Check settings that are already a dictionary; `name` stands in errors for their file."""
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    for key, table in document.items():
        if key not in SECTIONS:
            problems.append(unknown_table(key, tuple(SECTIONS), SECTIONS))
            continue
        made = read_table(SECTIONS[key], table, key, problems, SECTIONS)
        if made is not None:
            parts[key] = made
    config: TrainConfig | None = None
    try:
        config = TrainConfig(**parts)
    except SettingError as error:
        problems.extend(error.problems)
    if problems or config is None:
        raise ManifestError("\n".join(str(problem.in_file(name)) for problem in problems))
    return config


def config_dict(config: TrainConfig) -> dict[str, Any]:
    """The settings as plain values."""
    return {item.name: plain(getattr(config, item.name)) for item in fields(config)}


def config_digest(config: TrainConfig) -> str:
    """SHA-256 of the settings that decide what a run computes.

    How often it is saved and evaluated, and how long it goes on, do not: a run may be continued
    with a larger budget.
    """
    settings = config_dict(config)
    # Where a policy came from is in its checkpoints, whatever became of that place.
    del settings["evaluation"], settings["policy"]["start"]
    for name in ("budget", "updates", "checkpoint_every", "keep"):
        del settings["run"][name]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def default_config_toml() -> str:
    """A file with every setting, its default and what it means."""
    head = "# Settings of `herald train`. Every line is a default: keep those you want to change.\n"
    return head + "".join(
        block for name, kind in SECTIONS.items() for block in toml_table(name, kind)
    )
