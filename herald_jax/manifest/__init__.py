"""One TOML file with every setting of an audit, as frozen typed configs."""

from herald_jax.manifest.config import (
    Contract,
    Data,
    Detectors,
    Features,
    Generators,
    Lattice,
    Manifest,
    Operators,
    Penalties,
    Reward,
    Sections,
    Statistics,
)
from herald_jax.manifest.load import load_manifest, parse_manifest
from herald_jax.manifest.names import (
    BUILT_IN_CONTRACTS,
    GENERATORS,
    OPERATORS,
    PRIMARY_OPERATORS,
    SELECTIONS,
    VISIBLE_GENERATORS,
)
from herald_jax.manifest.serialise import default_toml, manifest_dict, manifest_digest

__all__ = [
    "BUILT_IN_CONTRACTS",
    "GENERATORS",
    "OPERATORS",
    "PRIMARY_OPERATORS",
    "SELECTIONS",
    "VISIBLE_GENERATORS",
    "Contract",
    "Data",
    "Detectors",
    "Features",
    "Generators",
    "Lattice",
    "Manifest",
    "Operators",
    "Penalties",
    "Reward",
    "Sections",
    "Statistics",
    "default_toml",
    "load_manifest",
    "manifest_dict",
    "manifest_digest",
    "parse_manifest",
]
