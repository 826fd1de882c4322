"""Index forms and conditions as isl text, under generated names.

Input:  ``6 * i.o + i.i`` at the second and third loop     Output: ``6*l1 + l2``

Names are made here (``p0`` for sizes, ``l0`` for loops) because a user's may mean something to isl
or not be identifiers: a stage may be called ``max`` or ``softmax/e``. A product or quotient of
sizes alone (``M * N``) becomes a parameter of its own: what holds for every value of it holds for
the real one. Everything else that is not affine raises :class:`NotProvedError`.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

import islpy as isl

from tensorlang.dtypes import i32, i64
from tensorlang.ir.affine import (
    Affine,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    affine,
    atom_variables,
)
from tensorlang.ir.definition import Condition
from tensorlang.ir.expr import (
    Call,
    Expr,
    IndexValue,
    affine_conditions,
    children,
    negated_conditions,
)
from tensorlang.ir.interval import is_nonnegative

Names = Mapping[Var, str]

_thread = threading.local()


class NotProvedError(Exception):
    """A question that cannot be put to isl, with the reason in words."""


def isl_context() -> isl.Context:
    """Return this thread's isl context: isl objects of two threads must not meet."""
    context: isl.Context | None = getattr(_thread, "context", None)
    if context is None:
        context = isl.Context()
        _thread.context = context
    return context


@contextmanager
def limited(budget: int) -> Generator[None, None, None]:
    """Bound isl's basic operations within the block; beyond, isl raises ``isl.Error``."""
    context = isl_context()
    context.reset_operations()
    context.set_max_operations(budget)
    try:
        yield
    finally:
        context.set_max_operations(0)
        context.resume()


def reason_of(error: Exception) -> str:
    """Return why something is not proved. Out of budget, isl fails at whatever it is doing."""
    if isinstance(error, NotProvedError):
        return f"not proved: {error}"
    try:
        isl.Set.read_from_str(isl_context(), "{ [x] : x >= 0 }").is_empty()
    except isl.Error:
        return "not proved: it takes more operations than the budget allows"
    return f"not proved: isl failed ({str(error).splitlines()[0]})"


class Parameters:
    """The isl parameters of one proof: sizes, and what is made of sizes but not affine in them."""

    def __init__(self, sizes: Iterable[Var], conditions: Iterable[Condition]) -> None:
        self.context = isl_context()
        self.atoms: dict[Atom, str] = {size: f"p{n}" for n, size in enumerate(sizes)}
        self._conditions = tuple(conditions)
        self._assumptions: tuple[int, isl.Set] | None = None

    def name(self, atom: Atom) -> str | None:
        """Return the parameter that stands for ``atom``, None unless it is made of sizes alone."""
        known = self.atoms.get(atom)
        if known is not None or isinstance(atom, Var):
            return known
        if isinstance(atom, Product | SymbolicDiv) and all(
            variable in self.atoms for variable in atom_variables(atom)
        ):
            self.atoms[atom] = f"p{len(self.atoms)}"
            return self.atoms[atom]
        return None

    @property
    def prefix(self) -> str:
        """The head of isl text: ``[p0, p1] ->``."""
        return f"[{', '.join(self.atoms.values())}] -> "

    @property
    def assumptions(self) -> isl.Set:
        """Sizes are not negative, and the conditions hold that are checked at the call."""
        if self._assumptions is None or self._assumptions[0] != len(self.atoms):
            parts: list[str] = []
            for condition in self._conditions:
                try:
                    text = form_text(condition.form, {}, self)
                except NotProvedError:
                    continue  # one assumption less
                parts.append(f"{text} {'=' if condition.equality else '>='} 0")
            parts.extend(
                f"{name} >= 0" for atom, name in self.atoms.items() if is_nonnegative(affine(atom))
            )
            text = f"{self.prefix}{{ : {' and '.join(parts) or 'true'} }}"
            self._assumptions = len(self.atoms), isl.Set.read_from_str(self.context, text)
        return self._assumptions[1]

    def set(self, text: str) -> isl.Set:
        """Return ``{ text }``, restricted to what is assumed of the sizes."""
        whole = isl.Set.read_from_str(self.context, f"{self.prefix}{{ {text} }}")
        return whole.intersect_params(self.assumptions)

    def map(self, text: str) -> isl.Map:
        """Return the relation ``{ text }``."""
        return isl.Map.read_from_str(self.context, f"{self.prefix}{{ {text} }}")


def form_text(form: Affine, names: Names, parameters: Parameters) -> str:
    """Return an index form as isl text; raises NotProvedError where it is not affine."""
    parts = [str(form.constant)] if form.constant or not form.terms else []
    for atom, coef in form.terms:
        text = _atom_text(atom, names, parameters)
        parts.append(text if coef == 1 else f"{coef}*{text}")
    return " + ".join(parts)


def _atom_text(atom: Atom, names: Names, parameters: Parameters) -> str:
    match atom:
        case Var():
            name = names.get(atom) or parameters.name(atom)
            if name is None:
                raise NotProvedError(f"the variable {atom} is used outside its loop")
            return name
        case FloorDiv():
            return f"floor(({form_text(atom.operand, names, parameters)})/{atom.divisor})"
        case Min():
            return f"min({', '.join(form_text(o, names, parameters) for o in atom.operands)})"
        case ValueAtom():
            raise NotProvedError(f"{atom!r} depends on data")
        case _:
            name = parameters.name(atom)
            if name is None:
                raise NotProvedError(f"{atom!r} is not affine in the loops")
            return name


def holds_text(form: Affine, names: Names, parameters: Parameters) -> str:
    """Return ``form >= 0`` as isl text.

    ``x // d >= y`` is written ``x >= d * y``: isl then needs no integer division for a tile loop.
    """
    for atom, coef in form.terms:
        if isinstance(atom, FloorDiv) and coef == 1:
            rest = affine(atom) - form
            return holds_text(atom.operand - rest * atom.divisor, names, parameters)
        if isinstance(atom, Min) and coef == 1:
            rest = form - affine(atom)
            return " and ".join(
                holds_text(operand + rest, names, parameters) for operand in atom.operands
            )
    return f"{form_text(form, names, parameters)} >= 0"


def fails_text(form: Affine, names: Names, parameters: Parameters) -> str:
    """Return ``form < 0`` as isl text."""
    return holds_text(-form - 1, names, parameters)


def condition_text(
    condition: Expr, taken: bool, names: Names, parameters: Parameters
) -> str | None:
    """Return where a branch is taken, as isl text; None when nothing is known about it.

    The text may hold at more points than the branch is taken at, never at fewer: parts that are
    not affine (they compare data, say) are left out.
    """
    if isinstance(condition, Call) and condition.function == "not":
        return condition_text(condition.args[0], not taken, names, parameters)
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        parts = [condition_text(arg, taken, names, parameters) for arg in condition.args]
        known = [part for part in parts if part is not None]
        if (condition.function == "and") == taken:
            return " and ".join(known) or None
        return f"({' or '.join(known)})" if len(known) == len(parts) else None
    if _may_wrap(condition):
        return None
    positive = affine_conditions(condition)
    if positive is not None:
        return _forms_text(positive, taken, names, parameters)
    negative = negated_conditions(condition)
    if negative is not None:
        return _forms_text(negative, not taken, names, parameters)
    return None


def says_something(condition: Expr, taken: bool) -> bool:
    """Tell whether :func:`condition_text` may know where a branch is taken."""
    if isinstance(condition, Call) and condition.function == "not":
        return says_something(condition.args[0], not taken)
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        parts = [says_something(arg, taken) for arg in condition.args]
        return any(parts) if (condition.function == "and") == taken else all(parts)
    known = affine_conditions(condition) or negated_conditions(condition)
    return known is not None and not _may_wrap(condition)


def _may_wrap(condition: Expr) -> bool:
    """Whether an index is compared in a type that may not hold it: unsigned, or narrow."""
    return any(
        isinstance(arg, IndexValue) and arg.dtype not in (i32, i64) for arg in children(condition)
    )


def _forms_text(
    forms: tuple[Affine, ...], hold: bool, names: Names, parameters: Parameters
) -> str | None:
    try:
        if hold:
            return " and ".join(holds_text(form, names, parameters) for form in forms)
        return f"({' or '.join(fails_text(form, names, parameters) for form in forms)})"
    except NotProvedError:
        return None
