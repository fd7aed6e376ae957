"""What every test runs under."""

import jax
from hypothesis import settings

# Before the first array: afterwards the number of devices is settled.
jax.config.update("jax_num_cpu_devices", 2)

# The first example of a shape compiles, and some write files: no deadline for a single one.
settings.register_profile("herald", deadline=None)
settings.load_profile("herald")
