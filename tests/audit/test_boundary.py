"""Leaks of every kind are planted and must be refused; honest functions must pass."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from herald_jax.audit import boundary
from herald_jax.types import BoundaryError


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Seen:
    ids: jax.Array
    count: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Gold:
    support: jax.Array
    f1: jax.Array


SEEN = Seen(ids=jnp.arange(4), count=jnp.int32(2))
GOLD = Gold(support=jnp.arange(4) + 1, f1=jnp.float32(0.5))


def check(function):
    found = boundary.reach(function, visible=SEEN, oracle=GOLD)
    boundary.require_visible("generator 'planted'", found, allowed=["visible"])
    return found


def leak_direct(visible, oracle):
    return visible.ids, oracle.support


def leak_arithmetic(visible, oracle):
    return visible.ids * 0 + (oracle.support * 2 - 1)


def leak_predicate(visible, oracle):
    return jax.lax.cond(oracle.f1 > 0, lambda x: x, lambda x: -x, visible.ids)


def leak_select(visible, oracle):
    return jnp.where(oracle.support > 1, visible.ids, 0)


def leak_scan(visible, oracle):
    def step(carry, x):
        return carry + oracle.support[x], carry

    return jax.lax.scan(step, jnp.int32(0), visible.ids)[1]


def leak_late_in_scan(visible, oracle):
    """Gold enters the first carry, moves to the second, and only then reaches the output."""

    def step(carry, x):
        first, second, third = carry
        return (first, first, second), third + x

    start = (oracle.support[0], jnp.int32(0), jnp.int32(0))
    return jax.lax.scan(step, start, visible.ids)[1]


def leak_while_condition(visible, oracle):
    return jax.lax.while_loop(lambda n: n < oracle.support[0], lambda n: n + 1, visible.count)


def leak_through_inner_jit(visible, oracle):
    return jax.jit(lambda a, b: a + b)(visible.ids, oracle.support)


def leak_through_vmap(visible, oracle):
    return jax.vmap(lambda a: a + oracle.support[0])(visible.ids)


def leak_custom_derivative(visible, oracle):
    @jax.custom_jvp
    def f(x, y):
        return x + y

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] + tangents[1]))
    return f(visible.ids.astype(jnp.float32), oracle.support.astype(jnp.float32))


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        (leak_direct, "oracle.support -> 1"),
        (leak_arithmetic, "oracle.support -> mul -> sub -> add -> result"),
        (leak_predicate, "cond predicate"),
        (leak_select, "oracle.support"),
        (leak_scan, "oracle.support"),
        (leak_late_in_scan, "scan"),
        (leak_while_condition, "oracle.support"),
        (leak_through_inner_jit, "oracle.support -> add -> result"),
        (leak_through_vmap, "oracle.support"),
        (leak_custom_derivative, "oracle.support"),
    ],
)
def test_a_planted_leak_is_refused_and_its_path_named(planted, named):
    with pytest.raises(BoundaryError, match="planted") as error:
        check(planted)
    assert named in str(error.value)
    assert "oracle." in str(error.value)


def test_a_captured_constant_is_refused():
    secret = jnp.array([3, 1, 2, 0])

    with pytest.raises(BoundaryError, match=r"captured constant int32\[4\]"):
        check(lambda visible, oracle: visible.ids + secret)


def test_a_constant_captured_by_an_inner_function_is_refused():
    secret = np.array([3, 1, 2, 0])
    inner = jax.jit(lambda ids: ids + secret)

    with pytest.raises(BoundaryError, match="captured constant"):
        check(lambda visible, oracle: inner(visible.ids))


def test_a_captured_scalar_array_is_refused():
    secret = jnp.float32(0.5)

    with pytest.raises(BoundaryError, match=r"captured constant float32\[scalar\]"):
        check(lambda visible, oracle: visible.ids * secret)


def test_a_host_callback_is_refused():
    def function(visible, oracle):
        return jax.pure_callback(
            lambda ids: np.asarray(ids), jax.ShapeDtypeStruct((4,), jnp.int32), visible.ids
        )

    with pytest.raises(BoundaryError, match="host code behind pure_callback"):
        check(function)


def leak_through_a_reference(visible, oracle):
    held = jax.new_ref(jnp.float32(0))
    held[...] = oracle.f1
    return visible.ids * (held[...] > 0)


def leak_through_a_reference_in_a_loop(visible, oracle):
    held = jax.new_ref(jnp.float32(0))

    def step(_, x):
        held[...] = oracle.f1
        return x + 1

    return jax.lax.fori_loop(0, 2, step, visible.ids) * (held[...] > 0)


def leak_through_a_reference_in_a_call(visible, oracle):
    held = jax.new_ref(jnp.float32(0))

    @jax.jit
    def write(f1):
        held[...] = f1

    write(oracle.f1)
    return visible.ids * (held[...] > 0)


@pytest.mark.parametrize(
    "planted",
    [
        leak_through_a_reference,
        leak_through_a_reference_in_a_loop,
        leak_through_a_reference_in_a_call,
    ],
)
def test_what_is_read_from_a_mutable_reference_is_refused(planted):
    with pytest.raises(BoundaryError, match="mutable state behind"):
        check(planted)


def test_a_callback_inside_a_solver_is_refused():
    def function(visible, oracle):
        def ask(x):
            shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
            return jax.pure_callback(lambda v: np.asarray(v), shape, x)

        start = visible.ids.astype(jnp.float32)
        return jax.lax.custom_linear_solve(
            ask, start, lambda _, b: b, lambda _, b: b, symmetric=True
        )

    with pytest.raises(BoundaryError, match="host code behind pure_callback"):
        check(function)


@pytest.mark.parametrize("secret", [np.float32(0.5), np.array(0.5), 0.5, 3])
def test_a_number_in_the_closure_is_refused(secret):
    with pytest.raises(BoundaryError, match="<captured secret> -> result"):
        check(lambda visible, oracle: visible.ids * secret)


def test_a_number_bound_to_an_argument_is_refused():
    def function(visible, oracle, secret):
        return visible.ids * secret

    with pytest.raises(BoundaryError, match="<bound argument secret>"):
        check(partial(function, secret=np.float32(0.5)))


def test_an_honest_function_passes_and_its_reads_are_exact():
    def function(visible, oracle):
        doubled = jax.lax.fori_loop(0, 3, lambda _, x: x * 2, visible.ids)
        return {"visible": Seen(ids=doubled, count=visible.count)}

    found = check(function)
    assert found.reads() == {"visible.ids"}
    assert found.unchanged == {"visible.count"}
    assert found.changed() == {"visible.ids"}


def test_an_input_passed_on_under_another_name_counts_as_changed():
    found = check(lambda visible, oracle: {"other": Seen(ids=visible.ids, count=visible.count)})
    assert found.unchanged == frozenset()
    assert found.reads(["other.count"]) == {"visible.count"}


def test_an_oracle_leaf_that_reaches_no_output_is_no_leak():
    def function(visible, oracle):
        _ = oracle.support + 1
        return visible.ids + 1

    assert check(function).reads() == {"visible.ids"}


def test_only_the_branch_operand_reaches_the_output_it_feeds():
    def function(visible, oracle):
        return jax.lax.cond(
            visible.count > 0, lambda a, b: (a, b), lambda a, b: (-a, -b), visible.ids, oracle.f1
        )

    found = boundary.reach(function, visible=SEEN, oracle=GOLD)
    assert set(found.outputs["0"]) == {"visible.ids", "visible.count"}
    assert set(found.outputs["1"]) == {"oracle.f1", "visible.count"}
