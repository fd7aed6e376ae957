"""`python -m herald_jax.cli`: the command where its script is not on the PATH."""

from herald_jax.cli import main

main()
