"""Checkpoints by Orbax: written in the background, finished ones alone are found, others are named.

A checkpoint is whole or it is none: Orbax writes to a temporary folder and renames it. What it was
made from stands inside it, so that the checkpoint of another run, or of other settings, is refused
by name instead of being continued.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from herald_jax.types import HeraldError

_FOLDER = "checkpoints"
_NEVER_AGAIN = 2**31  # updates; of all steps only 0 is a multiple of it


class CheckpointError(HeraldError):
    """A checkpoint that cannot be continued."""


class Checkpoints:
    """The checkpoints of one run.

    Args:
        run: folder of the run; they lie below it.
        keep: how many of the last stay.
        identity: what a checkpoint must have been made from, name by name.
    """

    def __init__(self, run: Path, *, keep: int, identity: Mapping[str, str]) -> None:
        logging.getLogger("absl").setLevel(logging.ERROR)
        self.folder = (run / _FOLDER).absolute()
        self._identity = dict(identity)
        self._manager = ocp.CheckpointManager(
            self.folder,
            options=ocp.CheckpointManagerOptions(
                max_to_keep=keep,
                # The policy before its first update stays: other runs may start from it.
                keep_period=_NEVER_AGAIN,
                create=True,
            ),
            item_names=("state", "loop"),
        )

    def save(self, step: int, state: Any, loop: Mapping[str, Any]) -> None:
        """Begin to save; training goes on meanwhile.

        Args:
            step: updates done.
            state: any tree of arrays.
            loop: what else is needed to go on, plain values.
        """
        # On a host the writer may look at the very memory that the next step takes over.
        if jax.default_backend() == "cpu":
            state = jax.tree.map(lambda leaf: leaf.copy(), state)
        self._manager.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state),
                loop=ocp.args.JsonSave({"identity": self._identity, **loop, "updates": step}),
            ),
        )

    def latest(self) -> int | None:
        """The greatest number of updates that a whole checkpoint holds."""
        return self._manager.latest_step()

    def incomplete(self) -> list[str]:
        """Names of folders beside the whole checkpoints, sorted: half-written or foreign."""
        whole = {str(step) for step in self._manager.all_steps()}
        return sorted(
            path.name for path in self.folder.iterdir() if path.is_dir() and path.name not in whole
        )

    def restore(self, step: int, target: Any) -> tuple[Any, dict[str, Any]]:
        """The state and the rest of a checkpoint.

        Args:
            step: its number.
            target: a tree of the arrays' shapes, types and shardings.

        Raises:
            CheckpointError: it is damaged, or was made from something else; says from what.
        """
        place = self.folder / str(step)
        try:
            loop = self._manager.restore(
                step, args=ocp.args.Composite(loop=ocp.args.JsonRestore())
            )["loop"]
        except Exception as error:  # whatever the library finds wrong with its files
            raise CheckpointError(f"{place}: damaged ({_first_line(error)}); delete it") from error
        if loop.get("updates") != step:
            raise CheckpointError(
                f"{place}: expected the state after {step} updates, got {loop.get('updates')}: it "
                "was renamed or copied; delete it"
            )
        made = loop.pop("identity", {})
        for name, expected in self._identity.items():
            if made.get(name) != expected:
                raise CheckpointError(
                    f"{place}: expected {name} {expected[:12]}, got {str(made.get(name))[:12]}: it "
                    "belongs to another run; use its settings, or another --out"
                )
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, target)
        try:
            state = self._manager.restore(
                step, args=ocp.args.Composite(state=ocp.args.StandardRestore(abstract))
            )["state"]
        except Exception as error:  # as above
            raise CheckpointError(f"{place}: damaged ({_first_line(error)}); delete it") from error
        return state, loop

    def finish(self) -> None:
        """Wait until all that was begun is written."""
        self._manager.wait_until_finished()

    def close(self) -> None:
        """Finish, and let go of what was opened."""
        self._manager.close()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
