"""Flat columns back to records, to compare what was read."""

from itertools import pairwise

from herald_jax.data.records import Step, Trajectory


def records_of(flat):
    """line -> record of every row; `generated_tokens` is not kept in columns and is None."""
    retrieved, citations, candidates = map(
        as_lists, (flat.retrieved, flat.citations, flat.candidates)
    )
    queries = flat.query.to_pylist()
    steps = [
        Step(query, names, valid)
        for query, names, valid in zip(queries, retrieved, flat.valid.tolist(), strict=True)
    ]
    rows = zip(
        flat.trajectory_id.to_pylist(),
        flat.question_id.to_pylist(),
        flat.question.to_pylist(),
        [steps[start:stop] for start, stop in pairwise(flat.steps.tolist())],
        flat.answer.to_pylist(),
        citations,
        flat.model.to_pylist(),
        flat.pool.to_pylist(),
        flat.rollout.tolist(),
        flat.selected.tolist(),
        flat.malformed.tolist(),
        [None] * len(flat),
        candidates,
        strict=True,
    )
    return dict(zip(flat.line.tolist(), (Trajectory(*row) for row in rows), strict=True))


def as_lists(lists):
    values = lists.values.to_pylist()
    pairs = zip(pairwise(lists.offsets.tolist()), lists.logged.tolist(), strict=True)
    return [values[start:stop] if logged else None for (start, stop), logged in pairs]
