"""Pure array programs: everything an audit or a trainer computes on a device."""

if __name__ != "herald_jax.kernels":
    raise ImportError("import herald_jax.kernels, not kernels")
