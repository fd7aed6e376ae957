"""Search-GRPO: training on the rewards that were audited."""

if __name__ != "herald_jax.train":
    raise ImportError("import herald_jax.train, not train")
