"""The thresholds and weights of a manifest as the kernels take them: one reading for all."""

import jax.numpy as jnp
import numpy as np

from herald_jax.kernels.detectors import Limits
from herald_jax.kernels.features import FeatureWeights
from herald_jax.kernels.programs import Rules
from herald_jax.manifest.config import Manifest
from herald_jax.types import DETECTORS


def measuring_rules(manifest: Manifest) -> Rules:
    """Thresholds of detectors and weights inside features (SPEC sections 3 and 4)."""
    detectors, features = manifest.detectors, manifest.features
    listed = np.array([name in features.hacking_flags for name in DETECTORS], np.float64)
    return Rules(
        limits=Limits(
            min_searches=jnp.asarray(np.int32(detectors.min_searches)),
            max_searches=jnp.asarray(np.int32(detectors.max_searches)),
        ),
        weights=FeatureWeights(
            precision=jnp.asarray(np.float32(features.grounding_precision)),
            recall=jnp.asarray(np.float32(features.grounding_recall)),
            hacking=jnp.asarray((listed / max(listed.sum(), 1.0)).astype(np.float32)),
        ),
    )
