"""The vocabulary every part speaks in: arrays with their axis letters, names, errors."""

from herald_jax.types.arrays import (
    NO_ANSWER,
    NOT_LOGGED,
    PAD,
    Edit,
    Labels,
    Offer,
    Oracle,
    State,
    Visible,
    pytree,
)
from herald_jax.types.errors import (
    BoundaryError,
    Fault,
    HeraldError,
    InputError,
    ManifestError,
)
from herald_jax.types.names import DETECTORS, FEATURES, SYMBOLS, VISIBLE_FLAGS

__all__ = [
    "DETECTORS",
    "FEATURES",
    "NOT_LOGGED",
    "NO_ANSWER",
    "PAD",
    "SYMBOLS",
    "VISIBLE_FLAGS",
    "BoundaryError",
    "Edit",
    "Fault",
    "HeraldError",
    "InputError",
    "Labels",
    "ManifestError",
    "Offer",
    "Oracle",
    "State",
    "Visible",
    "pytree",
]
