"""What every test runs under."""

import signal

import jax
from hypothesis import settings

# Before the first array: afterwards the number of devices is settled.
jax.config.update("jax_num_cpu_devices", 2)

# The first example of a shape compiles, and some write files: no deadline for a single one.
settings.register_profile("herald", deadline=None)
settings.load_profile("herald")

# A suite that is started in the background may have been told to ignore Ctrl-C, and what it starts
# inherits that: the commands that tests interrupt would rightly run on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
