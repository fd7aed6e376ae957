"""Arrays of trajectories, ids as integers.

Axis letters, said once and written on every field:

| letter | axis |
|---|---|
| B | trajectories of a block |
| G, M | questions (groups) of a block and rollouts of a question, B = G * M |
| N | passages of the corpus |
| R | ids that the executed searches of a trajectory returned |
| C | cited ids |
| S | support ids of a question |
| K | candidate ids |
| E | edits of a trajectory by one operator |
| D | detectors (`types.DETECTORS`), F: features (`types.FEATURES`) |
| J | reward contracts |

Kernels are written for one trajectory and name only its own axes; in a block the trajectories are
the *last* axis (`[R, B]`), so that vector units run over trajectories whatever the widths are.

Ids are codes. A passage of the corpus has the rank of its id in code-point order, 0 .. N-1, so that
"equal scores by passage id" is "lowest code first". Any other id has a code of at least N, distinct
for distinct ids of one block and its oracle. `PAD` (-1) is the absence of an id.
"""

import dataclasses
from typing import TypeVar, dataclass_transform

import jax

PAD = -1
NOT_LOGGED = -1
NO_ANSWER = -1

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def pytree(cls: type[T]) -> type[T]:
    """Frozen keyword-only dataclass whose fields are the leaves (or subtrees) of a JAX pytree."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, kw_only=True)(cls))


@pytree
class Visible:
    """What a trajectory shows to anyone: no gold label is in here or computed from one.

    Ids of steps that were not executed searches are left out of `retrieved` (SPEC section 1: such
    a step returned nothing), and rows with anything not logged never become arrays of this kind.
    """

    retrieved: jax.Array  # int32 [R] in the order of the log, repeats kept, PAD at the end
    citations: jax.Array  # int32 [C] in the order of the log, repeats kept, PAD at the end
    searches: jax.Array  # int32 [] executed searches
    invalid: jax.Array  # int32 [] steps that were not executed searches
    repeated: jax.Array  # bool [] two executed searches have the same normalised query
    answer_tokens: jax.Array  # int32 [] white-space tokens of the answer, NO_ANSWER when null
    malformed: jax.Array  # int32 [] citation markers that could not be read


@pytree
class Oracle:
    """Gold labels of a trajectory's question, and what is computed from them."""

    support: jax.Array  # int32 [S] distinct support ids in the order of the file, PAD at the end
    em: jax.Array  # float32 [] exact match of the answer
    f1: jax.Array  # float32 [] token F1 of the answer
    gold_em: jax.Array  # float32 [] the same of the first gold answer, NaN when there is none
    gold_f1: jax.Array  # float32 []
    gold_tokens: jax.Array  # int32 [] white-space tokens of the first gold answer, or NO_ANSWER
