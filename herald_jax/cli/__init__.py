"""The front door: the `herald` command. Thin; everything it does is a call of the Python API."""

from herald_jax.interrupts import end_on_interrupt


def main() -> None:
    """Run the command line of this process; Ctrl-C is seen to before anything slow is imported."""
    end_on_interrupt()
    from herald_jax.cli.app import run

    run()
