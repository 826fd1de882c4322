"""Turn instances of stages into stores to flat buffers.

Input::                                         Output::

    C.acc = local f32[6, 16] at [6 * i.o, 0]        C.acc = local f32[96]
    ...                                             ...
    C.acc[i, j] += A[i, k] * B[k, j]                C.acc[16 * i.i + j] = C.acc[16 * i.i + j] + ...
        # if i < M                                      under: if 6 * i.o + i.i < M

An ``Alloc`` becomes an ``Allocate`` (none if nothing uses it); indices become addresses through its
origin, layout and strides; a reduction's combiner is written out; a guard becomes an ``If``.
Elements of f16 and bf16 are widened to f32 when loaded and rounded when stored. An index that
depends on data is checked when the load happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tensorlang.dtypes import DType, evaluation_dtype, i64
from tensorlang.errors import CompileError
from tensorlang.ir.affine import (
    Affine,
    AffineLike,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    affine,
    map_atoms,
    minimum,
)
from tensorlang.ir.definition import Order, Scatter, Stage, Tensor
from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Load,
    Placeholder,
    ScalarRef,
    Select,
    children,
    postorder,
    value_atom,
)
from tensorlang.ir.lowered import (
    Allocate,
    BoundsCheck,
    CheckSite,
    FlatLoad,
    LoweredProgram,
    Store,
)
from tensorlang.ir.program import Alloc, Barrier, Compute, For, If, Prefetch, Program, Seq, Stmt
from tensorlang.ir.routines import operands_of, unit_of
from tensorlang.ir.walk import Substitution, map_children, replace_placeholders
from tensorlang.lower.buffers import ArrayLayout, Home, caller_home, owned_home
from tensorlang.lower.data import depends_on_data
from tensorlang.lower.order import lower_order
from tensorlang.lower.prefetch_lines import prefetch_lines
from tensorlang.lower.scatter import lower_scatter
from tensorlang.lower.storage import has_padding


def flatten(
    program: Program, layouts: Mapping[Tensor, ArrayLayout], *, check_bounds: bool = True
) -> LoweredProgram:
    """Return the lowered program of a program without ``Fused`` loops.

    ``layouts`` says how the caller's arrays lie in memory; without an entry: contiguous.
    """
    definition = program.definition
    tensors = definition.inputs + tuple(
        tensor for tensor in definition.outputs if tensor not in definition.inputs
    )
    homes = {tensor: caller_home(tensor, layouts.get(tensor, "contiguous")) for tensor in tensors}
    homes |= {tensor: _streamed(homes[tensor]) for tensor in program.streamed if tensor in homes}
    strides = [size for home in homes.values() for size in home.new_sizes()]
    flattener = _Flattener(homes, check_bounds, frozenset(program.streamed))
    body = flattener.stmt(program.body)
    return LoweredProgram(
        definition.name,
        definition.sizes + tuple(strides),
        definition.scalars,
        tuple([homes[tensor].buffer for tensor in definition.inputs]),
        tuple([homes[tensor].buffer for tensor in definition.outputs]),
        body,
        definition.conditions + program.conditions,
        tuple(flattener.sites),
    )


@dataclass(slots=True)
class _Flattener:
    """What is known at the present place, and the check sites found so far."""

    homes: dict[Tensor, Home]
    check_bounds: bool
    streamed: frozenset[Tensor] = frozenset()
    sites: dict[CheckSite, int] = field(default_factory=dict[CheckSite, int])
    used: set[Tensor] = field(default_factory=set[Tensor])
    results: dict[int, tuple[Expr, ...]] = field(default_factory=dict[int, tuple[Expr, ...]])

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Alloc():
                return self.alloc(stmt)
            case Compute():
                store = self.compute(stmt)
                return If(stmt.guard, store) if stmt.guard else store
            case Prefetch():
                self.used.add(stmt.tensor)
                return prefetch_lines(stmt, self.homes[stmt.tensor])
            case For() if (unit := unit_of(stmt)) is not None:
                return self.routine(unit)
            case For() | Seq() | If() | Barrier():
                return map_children(stmt, self.stmt)
            case _:
                raise TypeError(f"{type(stmt).__name__} is not a statement of a scheduled program")

    def alloc(self, alloc: Alloc) -> Stmt:
        tensor = alloc.tensor
        outer = self.homes.get(tensor)
        was_used = tensor in self.used
        self.used.discard(tensor)
        home = owned_home(alloc)
        if tensor in self.streamed:
            home = _streamed(home)
        self.homes[tensor] = home
        body = self.stmt(alloc.body)
        is_used = tensor in self.used
        if outer is None:
            del self.homes[tensor]
        else:
            self.homes[tensor] = outer
        if not was_used:
            self.used.discard(tensor)
        if not is_used:
            return body
        # Shared memory begins undefined: places that no element has are read by nobody there.
        zeroed = has_padding(alloc) and alloc.scope != "shared"
        return Allocate(home.buffer, body, zeroed=zeroed)

    def compute(self, compute: Compute) -> Store:
        stage = compute.stage
        mapping = dict(zip(stage.variables, compute.binding, strict=False))
        instance = _Instance(self, compute, Substitution(mapping))
        indices = compute.binding[: len(stage.axes)]
        targets = [self.home(compute, tensor) for tensor in stage.tensors]
        values = [
            _cast(instance.value(value), home.buffer.dtype)
            for value, home in zip(self.result_of(compute), targets, strict=True)
        ]
        places = [(home.buffer, home.offset(indices)) for home in targets]
        ordered = stage.combiner is not None and stage.combiner.ordered
        return Store(tuple(places), tuple(values), exact=ordered)

    def routine(self, compute: Compute) -> Stmt:
        """Return the loops that compute all elements of a sort's row, or of a scatter."""
        stage = compute.stage
        homes = [self.home(compute, tensor) for tensor in operands_of(stage)]
        target = self.home(compute, stage.tensor)
        if isinstance(stage.routine, Order):
            lowered = lower_order(compute, stage.routine, homes[0], target)
        else:
            assert isinstance(stage.routine, Scatter)
            location = str(stage.location)
            sites = tuple(
                [
                    self.site(CheckSite(stage.name, axis, location))
                    for axis in range(len(stage.axes))
                ]
                if self.check_bounds
                else ()
            )
            lowered = lower_scatter(compute, stage.routine, tuple(homes), target, sites)
        return If(compute.guard, lowered) if compute.guard else lowered

    def home(self, compute: Compute, tensor: Tensor) -> Home:
        tensor = compute.redirect(tensor)
        self.used.add(tensor)
        home = self.homes.get(tensor)
        if home is None:
            raise CompileError(
                f"{compute.stage.name} uses {tensor.name} where it has no storage: "
                "no Alloc around the statement holds it"
            )
        return home

    def result_of(self, compute: Compute) -> tuple[Expr, ...]:
        """Return what an instance stores, over the stage's variables."""
        stage = compute.stage
        if stage.routine is not None:
            raise CompileError(f"the loops of {stage.name} are not those of one sort or scatter")
        if stage.combiner is None:
            return stage.values
        if compute.part == "init":
            return stage.combiner.identity
        if compute.part != "update":
            raise TypeError(f"the init of {stage.name} has not been placed")
        if id(stage) not in self.results:
            self.results[id(stage)] = _combined(stage)
        return self.results[id(stage)]

    def site(self, site: CheckSite) -> int:
        return self.sites.setdefault(site, len(self.sites))


def _streamed(home: Home) -> Home:
    """Return ``home`` with its vectors written past the caches."""
    return replace(home, buffer=replace(home.buffer, streamed=True))


def _combined(stage: Stage) -> tuple[Expr, ...]:
    """Return the combiner's result over the present state and the values."""
    combiner = stage.combiner
    assert combiner is not None
    indices = tuple([affine(axis.variable) for axis in stage.axes])
    values: dict[Placeholder, Expr] = {}
    for placeholder, tensor in zip(combiner.left, stage.tensors, strict=True):
        values[placeholder] = Load(tensor, indices)
    values.update(zip(combiner.right, stage.values, strict=True))
    return tuple([replace_placeholders(result, values) for result in combiner.result])


@dataclass(slots=True)
class _Instance:
    """Translates the expressions of one instance; what they share is translated once."""

    flattener: _Flattener
    compute: Compute
    substitution: Substitution
    done: dict[int, tuple[Expr, Expr]] = field(default_factory=dict[int, "tuple[Expr, Expr]"])
    atoms: dict[ValueAtom, Affine] = field(default_factory=dict[ValueAtom, Affine])
    substituted: _Instance | None = None

    def value(self, expr: Expr) -> Expr:
        done = self.done

        def operands(node: Expr) -> tuple[Expr, ...]:
            return () if id(node) in done else children(node)

        for node in postorder((expr,), operands):
            if id(node) not in done:  # the node is kept: its id is not used again
                done[id(node)] = (node, self.translate(node))
        return done[id(expr)][1]

    def translate(self, expr: Expr) -> Expr:
        """Return a node over its operands, which were translated before."""
        match expr:
            case Load():
                return _widened(self.load(expr))
            case Call():
                args = tuple([self.value(arg) for arg in expr.args])
                return Call(expr.function, args, evaluation_dtype(expr.dtype))
            case Const():
                return Const(expr.value, evaluation_dtype(expr.dtype))
            case Select():
                parts = (
                    self.value(expr.condition),
                    self.value(expr.then),
                    self.value(expr.otherwise),
                )
                return Select(*parts, evaluation_dtype(expr.dtype))
            case IndexValue():
                index = self.index(expr.index)
                if evaluation_dtype(expr.dtype) is expr.dtype:
                    return IndexValue(index, expr.dtype)
                return _widened(Cast(IndexValue(index, i64), expr.dtype))
            case Cast():
                return _widened(_cast(self.value(expr.operand), expr.dtype))
            case Bitcast():
                operand = _cast(self.value(expr.operand), expr.operand.dtype)
                return _widened(Bitcast(operand, expr.dtype))
            case ScalarRef():
                return _widened(expr)
            case _:
                raise TypeError(f"{type(expr).__name__} is not a value of a scheduled program")

    def inner(self) -> _Instance:
        """Return what translates values inside of indices, which are substituted already."""
        if not self.substitution.mapping:
            return self
        if self.substituted is None:
            nothing = Substitution({})
            self.substituted = _Instance(self.flattener, self.compute, nothing)
        return self.substituted

    def load(self, load: Load) -> FlatLoad:
        home = self.flattener.home(self.compute, load.tensor)
        indices = tuple([self.index(index) for index in load.indices])
        checks: list[BoundsCheck] = []
        if self.flattener.check_bounds:
            for axis, index in enumerate(indices):
                if depends_on_data(index):
                    location = str(self.compute.stage.location)
                    site = self.flattener.site(CheckSite(load.tensor.name, axis, location))
                    checks.append(BoundsCheck(index, load.tensor.shape[axis], site))
        return FlatLoad(home.buffer, home.offset(indices), tuple(checks))

    def index(self, index: Affine) -> Affine:
        index = self.substitution.index(index)
        return map_atoms(index, self.atom) if depends_on_data(index) else index

    def atom(self, atom: Atom) -> AffineLike:
        """Translate the values inside an atom of an index expression."""
        match atom:
            case ValueAtom():
                known = self.atoms.get(atom)
                if known is None:
                    known = self.atoms[atom] = affine(value_atom(self.inner().value(atom.expr)))
                return known
            case FloorDiv():
                return map_atoms(atom.operand, self.atom) // atom.divisor
            case SymbolicDiv():
                return map_atoms(atom.operand, self.atom) // map_atoms(atom.divisor, self.atom)
            case Product():
                result = affine(1)
                for factor in atom.factors:
                    result = result * affine(self.atom(factor))
                return result
            case Min():
                return minimum(*[map_atoms(operand, self.atom) for operand in atom.operands])
            case Var():
                return atom


def _cast(expr: Expr, dtype: DType) -> Expr:
    return expr if expr.dtype is dtype else Cast(expr, dtype)


def _widened(expr: Expr) -> Expr:
    """Return a value as expressions compute with it: f16 and bf16 as f32."""
    return _cast(expr, evaluation_dtype(expr.dtype))
