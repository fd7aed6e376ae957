"""Rows of a section as the pytrees of the kernels, padded; visible and oracle sides apart."""

from typing import Any, cast

import jax
import numpy as np
from numpy.typing import NDArray

from herald_jax.data.blocks import Widths
from herald_jax.data.questions import Questions
from herald_jax.data.ragged import Int32
from herald_jax.pool.rows import Rows
from herald_jax.types import NO_ANSWER, PAD, Oracle, Visible


def visible_block(rows: Rows, at: Int32, widths: Widths) -> Visible:
    """The visible side of a block, as host arrays.

    Args:
        rows: where the trajectories are.
        at: int32 [B] which of them; `PAD` gives a trajectory without searches, citations or answer.
        widths: padded lengths.

    Returns:
        `Visible` with trajectories along the last axis: `[R, B]`, `[C, B]` and `[B]`.

    Raises:
        ValueError: a list is longer than its width.
        IndexError: a row is neither `PAD` nor there.
    """
    table = rows.table
    return Visible(
        retrieved=_array(rows.retrieved.to_padded(at, widths.retrieved)),
        citations=_array(rows.citations.to_padded(at, widths.citations)),
        searches=_array(gather(table["searches"], at, 0)),
        invalid=_array(gather(table["invalid"], at, 0)),
        repeated=_array(gather(table["repeated"], at, False)),
        answer_tokens=_array(gather(table["answer_tokens"], at, NO_ANSWER)),
        malformed=_array(gather(table["malformed"], at, 0)),
    )


def oracle_block(rows: Rows, questions: Questions, at: Int32, widths: Widths) -> Oracle:
    """The oracle side of a block, as host arrays; arguments and errors as `visible_block`.

    Returns:
        `Oracle` with trajectories along the last axis. A `PAD` row has no support, an answer that
        scores 0 and no gold.
    """
    table = rows.table
    question = gather(table["question"], at, PAD)
    return Oracle(
        support=_array(questions.support.to_padded(question, widths.support)),
        em=_array(gather(table["em"], at, 0.0).astype(np.float32)),
        f1=_array(gather(table["f1"], at, 0.0).astype(np.float32)),
        gold_em=_array(gather(questions.gold_em, question, np.nan).astype(np.float32)),
        gold_f1=_array(gather(questions.gold_f1, question, np.nan).astype(np.float32)),
        gold_tokens=_array(gather(questions.gold_tokens, question, NO_ANSWER)),
        is_gold=_array(gather(table["is_gold"], at, False)),
    )


def gather(column: NDArray[Any], at: Int32, padding: Any) -> NDArray[Any]:
    """column[at] where there is a row, the padding elsewhere; -1 never reads the last row.

    Raises:
        IndexError: a row is neither `PAD` nor there.
    """
    real = at != PAD
    if np.any(at[real] < 0) or np.any(at[real] >= len(column)):
        raise IndexError(f"rows must be {PAD} or in 0 .. {len(column) - 1}")
    out = np.full(len(at), padding, column.dtype)
    out[real] = column[at[real]]
    return out


def _array(values: NDArray[Any]) -> jax.Array:
    # Host memory until a jitted function takes it: copying is the caller's moment to choose.
    return cast(jax.Array, values)
