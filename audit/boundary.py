"""The information boundary: which input leaves reach which outputs of a function, from its jaxpr.

A candidate generator or a visible-only operator must not depend on gold labels. That is a property
of its program, so it is read off the program: the function is traced with the visible and the
oracle arrays side by side, and every output carries the set of input leaves that can influence it,
through arithmetic, predicates, loop carries and inner functions. What cannot be followed is a
source of its own and never counts as safe: a value that the closure captured (it is a constant of
the jaxpr, no input of it), what a host callback returns, what is read from a mutable reference.

Its limit: a number that Python computed before the trace is a literal of the program and cannot be
told from one that was written there. Values in the closure, the defaults and the bound arguments of
the function are refused for that reason; what it reaches through module globals is not looked at.

Sources: SPEC section 5 (fields of an operator), section 6 (what a generator may see).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.extend import core

from herald_jax.types import BoundaryError

# Primitives that run code outside the traced program, by a part of their name.
_OPAQUE = ("callback", "ffi_call", "infeed", "custom_call")

_ARRAYS = (jax.Array, np.ndarray, np.generic)

# From a source to the chain of primitives through which it came.
Sources = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Reach:
    """For every output leaf, by its path, the sources that reach it and the way they took."""

    outputs: Mapping[str, Sources]
    unchanged: frozenset[str]  # outputs that are the input of the same path, passed through

    def reads(self, outputs: Iterable[str] | None = None) -> frozenset[str]:
        """Sources of some outputs (of all that are not merely passed through, by default)."""
        names = self.changed() if outputs is None else outputs
        return frozenset(source for name in names for source in self.outputs[name])

    def changed(self) -> frozenset[str]:
        """Outputs that are computed, not passed through."""
        return frozenset(self.outputs) - self.unchanged


def reach(
    function: Callable[..., Any], *, closure_of: Callable[..., Any] | None = None, **inputs: Any
) -> Reach:
    """Trace a function and follow every input leaf to the outputs it can influence.

    Args:
        function: called with the inputs by keyword; it must be traceable by JAX.
        closure_of: whose closure must hold no values; the function itself by default.
        **inputs: pytrees of arrays or `jax.ShapeDtypeStruct`; leaf `support` of the input `oracle`
            is called `oracle.support`.

    Returns:
        `Reach` with outputs called by their path in what the function returns.
    """
    names = list(inputs)
    closed, shape = jax.make_jaxpr(
        lambda *values: function(**dict(zip(names, values, strict=True))), return_shape=True
    )(*inputs.values())
    leaves = [_path(path) for path, _ in jax.tree_util.tree_leaves_with_path(inputs)]
    # A dict flattens by sorted key, positional arguments in order: bring leaves to that order.
    by_input = {name: [leaf for leaf in leaves if leaf.split(".")[0] == name] for name in names}
    paths = [leaf for name in names for leaf in by_input[name]]
    arguments: list[Sources] = [{path: ()} for path in paths]
    found = _follow(closed, arguments)
    if held := _held(function if closure_of is None else closure_of):
        found = [sources | dict.fromkeys(held, ()) for sources in found]
    outputs = [_path(path) for path, _ in jax.tree_util.tree_leaves_with_path(shape)]
    origin = dict(zip(closed.jaxpr.invars, paths, strict=True))
    unchanged = {
        name
        for name, var in zip(outputs, closed.jaxpr.outvars, strict=True)
        if not isinstance(var, core.Literal) and origin.get(var) == name
    }
    return Reach(dict(zip(outputs, found, strict=True)), frozenset(unchanged))


def _held(function: Callable[..., Any]) -> list[str]:
    """Numbers and arrays that Python itself gives a function beside its arguments, by name."""
    if isinstance(function, partial):
        bound = dict(enumerate(function.args)) | function.keywords
        given = [f"argument {name}" for name, value in bound.items() if _is_value(value)]
        return [f"<bound {name}>" for name in given] + _held(function.func)
    code = getattr(function, "__code__", None)
    if code is None:
        inner = getattr(function, "__wrapped__", None)
        return _held(inner) if inner is not None else []
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names = [f"captured {name}" for name, cell in cells if _is_value(_content(cell))]
    defaults = function.__defaults__ or ()
    # A plain number there is part of the program's text.
    names += [f"default {value!r:.20}" for value in defaults if isinstance(value, _ARRAYS)]
    return [f"<{name}>" for name in names]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return None


def _is_value(value: Any) -> bool:
    return isinstance(value, (*_ARRAYS, float, int)) and not isinstance(value, bool)


def require_visible(what: str, found: Reach, *, allowed: Sequence[str]) -> None:
    """Refuse a function that any source outside the allowed inputs reaches.

    Args:
        what: the name of the function in the error.
        found: from `reach`.
        allowed: names of inputs whose leaves it may read.

    Raises:
        BoundaryError: naming each source, the output it reaches and the way it takes.
    """
    leaks = [
        f"{source} -> {' -> '.join((*chain, output))}"
        for output, sources in found.outputs.items()
        for source, chain in sources.items()
        if source.split(".")[0] not in allowed
    ]
    if leaks:
        raise BoundaryError(
            f"{what} may read {', '.join(allowed)} only, but:\n  "
            + "\n  ".join(leaks)
            + "\nDeclare it oracle-only, or pass what it needs as a visible input."
        )


def _path(path: Sequence[Any]) -> str:
    return jax.tree_util.keystr(tuple(path), simple=True, separator=".") or "result"


def _follow(closed: core.ClosedJaxpr, arguments: Sequence[Sources]) -> list[Sources]:
    """Sources of the outputs of a jaxpr, given those of its inputs."""
    jaxpr = closed.jaxpr
    known: dict[core.Var, Sources] = {}
    for var, constant in zip(jaxpr.constvars, closed.consts, strict=True):
        known[var] = _captured(constant)
    known.update(zip(jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Sources:
        if isinstance(atom, core.Literal):
            return _captured(atom.val) if getattr(atom.val, "ndim", 0) else {}
        return known.get(atom, {})

    for equation in jaxpr.eqns:
        sources = _equation(equation, [read(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, sources, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _captured(constant: Any) -> Sources:
    shape = "x".join(map(str, getattr(constant, "shape", ()))) or "scalar"
    kind = getattr(constant, "dtype", type(constant).__name__)
    return {f"<captured constant {kind}[{shape}]>": ()}


def _merge(parts: Iterable[Sources], through: str) -> Sources:
    merged: Sources = {}
    for part in parts:
        for source, chain in part.items():
            merged.setdefault(source, (*chain, through))
    return merged


def _equation(equation: Any, inputs: list[Sources]) -> list[Sources]:
    """Sources of each output of one equation."""
    name = equation.primitive.name
    if name == "cond":
        return _cond(equation, inputs)
    if name == "while":
        return _while(equation, inputs)
    if name == "scan":
        return _scan(equation, inputs)
    inner = list(_inner(equation.params.values()))
    if len(inner) == 1 and _calls(inner[0], equation):
        return _follow(inner[0], inputs)
    # Anything else mixes everything: its operands, and whatever its inner programs hold.
    held = [_own(equation), *(source for closed in inner for source in _inside(closed))]
    mixed = _merge([*inputs, *held], name)
    return [dict(mixed) for _ in equation.outvars]


def _own(equation: Any) -> Sources:
    """What an equation brings in by itself: code of the host, state that changes in place."""
    name = equation.primitive.name
    if any(part in name for part in _OPAQUE):
        return {f"<host code behind {name}>": ()}
    operands = (*equation.invars, *equation.outvars)
    if any(type(atom.aval).__name__.endswith("Ref") for atom in operands):
        return {f"<mutable state behind {name}>": ()}
    return {}


def _inside(closed: core.ClosedJaxpr) -> Iterable[Sources]:
    """What an inner program brings in, at any depth."""
    yield from map(_captured, closed.consts)
    for equation in closed.jaxpr.eqns:
        yield _own(equation)
        for inner in _inner(equation.params.values()):
            yield from _inside(inner)


def _inner(params: Iterable[Any]) -> Iterable[core.ClosedJaxpr]:
    """Every program among the parameters of an equation, open ones closed over nothing."""
    for value in params:
        if isinstance(value, core.ClosedJaxpr):
            yield value
        elif isinstance(value, core.Jaxpr):
            yield core.ClosedJaxpr(value, ()) if not value.constvars else _unknown(value)
        elif isinstance(value, tuple | list):
            yield from _inner(value)


def _unknown(jaxpr: core.Jaxpr) -> core.ClosedJaxpr:
    """An open program with constants of unknown value: each is a source of its own."""
    return core.ClosedJaxpr(jaxpr, tuple(var.aval for var in jaxpr.constvars))


def _calls(inner: core.ClosedJaxpr, equation: Any) -> bool:
    """The equation is a plain call: operands and results are those of its one inner program."""
    return len(inner.jaxpr.invars) == len(equation.invars) and len(inner.jaxpr.outvars) == len(
        equation.outvars
    )


def _cond(equation: Any, inputs: list[Sources]) -> list[Sources]:
    predicate = _merge([inputs[0]], "cond predicate")
    branches = [_follow(branch, inputs[1:]) for branch in equation.params["branches"]]
    return [_merge(parts, "cond") | predicate for parts in zip(*branches, strict=True)]


def _while(equation: Any, inputs: list[Sources]) -> list[Sources]:
    params = equation.params
    split = params["cond_nconsts"]
    consts, body_consts = inputs[:split], inputs[split : split + params["body_nconsts"]]
    carry = inputs[split + params["body_nconsts"] :]
    while True:
        (predicate,) = _follow(params["cond_jaxpr"], [*consts, *carry])
        body = _follow(params["body_jaxpr"], [*body_consts, *carry])
        grown = [
            old | _new(old, _merge([new, predicate], "while"))
            for old, new in zip(carry, body, strict=True)
        ]
        if all(len(a) == len(b) for a, b in zip(grown, carry, strict=True)):
            return grown
        carry = grown


def _scan(equation: Any, inputs: list[Sources]) -> list[Sources]:
    params = equation.params
    if "num_consts" in params:
        n_consts, n_carry = params["num_consts"], params["num_carry"]
    else:  # JAX 0.12 on
        n_consts, n_carry, _ = (len(part) for part in params["ft_in"].unpack())
    consts = inputs[:n_consts]
    carry = inputs[n_consts : n_consts + n_carry]
    rows = inputs[n_consts + n_carry :]
    while True:
        out = _follow(params["jaxpr"], [*consts, *carry, *rows])
        stepped, stacked = out[: len(carry)], out[len(carry) :]
        grown = [
            old | _new(old, _merge([new], "scan")) for old, new in zip(carry, stepped, strict=True)
        ]
        if all(len(a) == len(b) for a, b in zip(grown, carry, strict=True)):
            return [*grown, *(_merge([part], "scan") for part in stacked)]
        carry = grown


def _new(old: Sources, found: Sources) -> Sources:
    return {source: chain for source, chain in found.items() if source not in old}
