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
| X | features and detectors, one after the other (`kernels.rewards`) |
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
    is_gold: jax.Array  # bool [] the answer is the first gold answer, character by character


@pytree
class State:
    """A trajectory as detectors see it: what it did, and what is known of each id it cites.

    Everything an operator of SPEC section 5 can change is in here, so that an edit is a new
    `State` and needs no second look at the retrieved ids.
    """

    ids: jax.Array  # int32 [C] cited ids, PAD where absent
    present: jax.Array  # bool [C] there is a citation at this position
    real: jax.Array  # bool [C] it is a passage of the corpus
    retrieved: jax.Array  # bool [C] an executed search returned it
    first: jax.Array  # bool [C] it does not stand at an earlier position
    searches: jax.Array  # int32 []
    invalid: jax.Array  # int32 []
    repeated: jax.Array  # bool []
    answer_tokens: jax.Array  # int32 []
    malformed: jax.Array  # int32 []


@pytree
class Offer:
    """Ids that an operator may write: one (`[]`) for each edit, or a list (`[C]`) for one edit."""

    ids: jax.Array  # int32, PAD where there is none
    present: jax.Array  # bool
    real: jax.Array  # bool
    retrieved: jax.Array  # bool


@pytree
class Labels:
    """What gold says of a `State`, and of the ids on offer to it."""

    support: jax.Array  # bool [C] the citation at this position is a support id
    offered_support: jax.Array  # bool, shaped like the Offer
    n_support: jax.Array  # int32 [] distinct support ids of the question
    f1: jax.Array  # float32 []
    gold_f1: jax.Array  # float32 [] NaN when the question has no gold answer
    gold_tokens: jax.Array  # int32 []
    is_gold: jax.Array  # bool []


@pytree
class Edit:
    """What an operator did to one trajectory.

    `offered` and `gold` say which labels move along: a visible-only operator cannot know them.
    """

    made: jax.Array  # bool [] False: the operator makes no edit of this trajectory
    state: State  # after the edit
    offered: jax.Array  # bool [C] positions that now hold an id on offer
    gold: jax.Array  # bool [] the answer became the first gold answer
