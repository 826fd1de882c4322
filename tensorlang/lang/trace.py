"""The state of one tracing: sizes, open comprehensions, and the stages made so far.

Input:  the calls that the user's function makes (``tl.tensor``, ``tl.sum``, ``A[i, k]``)
Output: a list of IR stages with provisional names, which ``finish`` turns into a ``Definition``

A comprehension is advanced once, with symbolic axes. An axis belongs to it iff it was created
during that step and stands in the generator's frame, whose variable gives the axis its name. A
second step must find every loop exhausted: a loop over anything but axes would yield again.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, GeneratorType
from typing import Any, cast

from tensorlang.ir.affine import Affine, Var, variables_of
from tensorlang.ir.definition import Axis, Condition, Scalar, Stage, Tensor
from tensorlang.ir.expr import Load
from tensorlang.lang.dims import DimVar
from tensorlang.lang.expression import Expression
from tensorlang.lang.mistakes import definition_error, python_iteration
from tensorlang.lang.values import Index
from tensorlang.source import SourceLocation, location_of
from tensorlang.vectorcall import close_gate, open_gate


@dataclass(frozen=True, slots=True, eq=False)
class TracedAxis:
    """A loop of a comprehension: its IR axis, what the user sees, and bounds of ``tl.range``.

    The loop variable holds ``shown``, a form over the axis; all forms of ``predicate`` are >= 0
    at the points that the loop visits.
    """

    axis: Axis
    shown: Index
    predicate: tuple[Affine, ...] = ()


@dataclass(slots=True, eq=False)
class Scope:
    """A comprehension while it is advanced."""

    reader: str
    frame: FrameType | None
    code: CodeType
    axes: list[TracedAxis] = field(default_factory=list[TracedAxis])
    has_grid: bool = False
    probing: bool = False


class SecondPointError(Exception):
    """Raised inside a comprehension that starts its loops anew; never seen by users."""


@dataclass(slots=True, eq=False)
class Trace:
    """What is known of an operator while its function runs."""

    name: str
    code: CodeType
    sizes: list[Var]
    inputs: list[Tensor]
    scalars: list[Scalar]
    size_set: set[Var] = field(default_factory=set[Var])
    scopes: list[Scope] = field(default_factory=list[Scope])
    stages: list[Stage] = field(default_factory=list[Stage])
    conditions: list[Condition] = field(default_factory=list[Condition])
    load_places: dict[int, tuple[Load, SourceLocation]] = field(
        default_factory=dict[int, "tuple[Load, SourceLocation]"]
    )
    local_names: dict[Tensor, str] = field(default_factory=dict[Tensor, str])
    given_names: dict[Tensor, str] = field(default_factory=dict[Tensor, str])
    derived_names: dict[Tensor, tuple[Tensor | None, str]] = field(
        default_factory=dict[Tensor, "tuple[Tensor | None, str]"]
    )
    inlined_names: dict[Tensor, str] = field(default_factory=dict[Tensor, str])
    prefixes: set[str] = field(default_factory=set[str])
    frame: FrameType | None = None

    def __post_init__(self) -> None:
        self.size_set = set(self.sizes)

    # --- comprehensions ------------------------------------------------------------------

    def advance(self, generator: object, reader: str) -> tuple[Any, Scope]:
        """Return what a comprehension yields for symbolic axes, and those axes."""
        if not isinstance(generator, GeneratorType):
            raise definition_error(
                f"{reader} takes a comprehension, as in {reader}(X[i] for i in N), "
                f"not {_described(generator)}"
            )
        running = cast("GeneratorType[Any, None, None]", generator)
        scope = Scope(reader, running.gi_frame, running.gi_code)
        if running.gi_frame is None:
            raise definition_error(f"this comprehension was used before it came to {reader}")
        self.scopes.append(scope)
        try:
            value = next(running)
            name_axes(scope, complete=True)
            scope.probing = True
            self._check_exhausted(running, scope)
        except StopIteration:
            raise definition_error(
                f"the comprehension of {reader} yields nothing: a loop in it runs over an empty "
                "Python iterable, or its `if` is false"
            ) from None
        finally:
            self.scopes.pop()
            running.close()
        scope.frame = None
        return value, scope

    def _check_exhausted(self, running: GeneratorType[Any, None, None], scope: Scope) -> None:
        place = None if running.gi_frame is None else location_of(running.gi_frame)
        try:
            next(running)
        except StopIteration:
            return
        except SecondPointError:
            pass
        raise definition_error(
            f"a loop in the comprehension of {scope.reader} runs over a Python iterable with "
            "several elements; write tl.range for a loop over a fixed number of points (or build "
            "the expression with a Python loop outside the comprehension)",
            place,
        ) from None

    def new_axis(
        self, extent: Affine, low: Affine, predicate: tuple[Affine, ...] = ()
    ) -> TracedAxis:
        """Add an axis to the innermost comprehension; its loop variable starts at ``low``."""
        self.check_sizes(extent)
        variable = Var("?")
        shown = Index(low + variable)
        axis = TracedAxis(Axis(variable, extent), shown, predicate)
        self.scopes[-1].axes.append(axis)
        return axis

    def check_sizes(self, form: Affine) -> None:
        """Check that ``form`` uses sizes of this operator and axes of open comprehensions only."""
        known = self.size_set | {axis.axis.variable for axis in self.open_axes()}
        for variable in sorted(variables_of(form) - known, key=lambda var: var.serial):
            raise self.unknown_variable(variable)

    def unknown_variable(self, variable: Var) -> Exception:
        """Return the error of a size that no parameter has, or of an axis outside its loop."""
        if any(size.name == variable.name for size in self.sizes):
            return definition_error(
                f"two different dims are called {variable.name} in {self.name}; "
                "make each with one tl.dims call and use that object everywhere"
            )
        if isinstance(variable, DimVar):
            return definition_error(
                f"the size {variable.name} is not bound in {self.name}: no parameter's shape has "
                f"it; add a keyword parameter `{variable.name}: tl.Dim` after a `*`, or use x.shape"
            )
        return definition_error(
            f"the axis {variable.name} is used outside of its comprehension "
            "(a builtin such as sum or max around an inner comprehension does this too)"
        )

    def open_axes(self) -> Iterator[TracedAxis]:
        """Yield the axes of all comprehensions that are being advanced, outer ones first."""
        for scope in self.scopes:
            yield from scope.axes

    def name_of(self, tensor: Tensor) -> str:
        """Return how the user calls ``tensor``, as far as that is known before the end."""
        known = self.local_names.get(tensor, tensor.name)
        return "the tensor" if known == "?" else known

    # --- the user's variables ------------------------------------------------------------

    def note_locals(self) -> None:
        """Remember which of the user's variables hold tensors, before they are bound anew."""
        if self.frame is None:
            frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            while frame is not None and frame.f_code is not self.code:
                frame = frame.f_back
            self.frame = frame
        if self.frame is None:
            return
        from tensorlang.lang.tensor import names_by_variable

        for name, value in self.frame.f_locals.items():
            for tensor, called in names_by_variable(name, value, self):
                self.local_names.setdefault(tensor, called)
        self.name_open_axes()

    def name_open_axes(self) -> None:
        """Name the axes of open comprehensions, as far as their loops have been entered."""
        for scope in self.scopes:
            name_axes(scope)


def name_axes(scope: Scope, complete: bool = False) -> None:
    """Name the axes of a comprehension after the loop variables that hold them.

    ``complete`` asserts that every loop has been entered, so that an axis which stands in no
    variable has been lost: two loops share a name, or a builtin took the axis.
    """
    if scope.frame is None:
        return
    holders: dict[int, str] = {}
    for name, value in scope.frame.f_locals.items():
        if isinstance(value, Index):
            holders[id(value)] = name
        elif isinstance(value, tuple | list):
            for position, part in enumerate(cast("list[object]", value)):
                holders.setdefault(id(part), f"{name}{position}")
    for axis in scope.axes:
        name = holders.get(id(axis.shown))
        if name is not None:
            axis.axis.variable.name = name
        elif complete:
            raise _lost_axis(scope, axis)


def _lost_axis(scope: Scope, axis: TracedAxis) -> Exception:
    assert scope.frame is not None
    return definition_error(
        f"the comprehension of {scope.reader} has a loop over {axis.axis.extent} whose variable is "
        "gone when its body is reached: two loops share one name, or a Python builtin (next, any, "
        "sum, max) consumed an inner comprehension",
        location_of(scope.frame),
    )


_state = threading.local()


def active() -> Trace | None:
    """Return the tracing that this thread is in, if any."""
    stack: list[Trace] | None = getattr(_state, "stack", None)
    return stack[-1] if stack else None


def current(what: str) -> Trace:
    """Return the tracing that this thread is in; ``what`` names the caller in the error."""
    trace = active()
    if trace is None:
        raise definition_error(
            f"{what} describes a computation and only has a meaning inside a function decorated "
            "with @tl.compute"
        )
    return trace


def push(trace: Trace) -> None:
    """Make ``trace`` the one that comprehensions of this thread belong to."""
    stack: list[Trace] = getattr(_state, "stack", [])
    _state.stack = stack
    stack.append(trace)
    close_gate()  # operators are inlined now, even those that know their arguments


def pop() -> None:
    """Undo the last ``push``."""
    _state.stack.pop()
    open_gate()


def python_loop(extent: Affine, frame: FrameType | None) -> Exception:
    """Return the error of a Python loop or builtin that iterates a size."""
    return python_iteration(f"the size {extent}", frame)


def _described(value: object) -> str:
    """Return what was given instead of a comprehension: an expression as it is written."""
    return str(value) if isinstance(value, Expression) else type(value).__name__
