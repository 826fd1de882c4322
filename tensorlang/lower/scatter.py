"""A scatter in the grammar of lowered programs.

Input:  ``for e in E: out[e] = scatter(base[e], (index[:]), value[:], add)``
Output: ``for e in E: out[e] = base[e]``, then for each update, in order,
        ``if 0 <= index[k] < E: out[index[k]] = out[index[k]] + value[k]``, and else a failed check
"""

from __future__ import annotations

from tensorlang.dtypes import evaluation_dtype, i64
from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Scatter
from tensorlang.ir.expr import Call, Cast, Expr, value_atom
from tensorlang.ir.lowered import Allocate, BoundsCheck, Buffer, FlatLoad, Store
from tensorlang.ir.program import Compute, For, If, Stmt
from tensorlang.ir.routines import operands_of
from tensorlang.ir.walk import sequence
from tensorlang.lower.buffers import Home


def lower_scatter(
    compute: Compute,
    scatter: Scatter,
    operands: tuple[Home, ...],
    target: Home,
    sites: tuple[int, ...],
) -> Stmt:
    """Return the statements of a scatter; ``sites`` number its checks, empty for none."""
    stage = compute.stage
    shape = tuple([axis.extent for axis in stage.axes])
    base, *indices, value = operands
    here = tuple([Var(axis.variable.name) for axis in stage.axes])
    places = tuple(map(affine, here))
    copied = FlatLoad(base.buffer, base.offset(places))
    copy = _nest(here, shape, _put(target.buffer, target.offset(places), copied))

    updates = operands_of(stage)[-1].shape
    steps = tuple([Var(f"k{axis}") for axis in range(len(updates))])
    step = tuple(map(affine, steps))
    found = Buffer(f"{stage.name}.at", i64, affine(len(shape)), "local", 8)
    notes = [
        _put(found, affine(axis), _as_index(FlatLoad(home.buffer, home.offset(step))))
        for axis, home in enumerate(indices)
    ]
    at = tuple([affine(value_atom(FlatLoad(found, affine(axis)))) for axis in range(len(shape))])
    new = _wide(FlatLoad(value.buffer, value.offset(step)))
    offset = target.offset(at)
    if scatter.combine is not None:
        present = _wide(FlatLoad(target.buffer, offset))
        new = Call(scatter.combine, (present, new), new.dtype)
    store: Stmt = _put(target.buffer, offset, _narrow(new, target.buffer))
    if sites:
        checks = tuple([BoundsCheck(*parts) for parts in zip(at, shape, sites, strict=True)])
        # The load fails its checks, which reports the index; what it gives does not matter.
        report = _put(found, affine(0), FlatLoad(found, affine(0), checks))
        inside: list[Affine] = []
        for index, extent in zip(at, shape, strict=True):
            inside.extend((index, extent - 1 - index))
        store = If(tuple(inside), store, report)
    body = Allocate(found, sequence(*notes, store))
    return sequence(copy, _nest(steps, updates, body))


def _nest(variables: tuple[Var, ...], extents: tuple[Affine, ...], body: Stmt) -> Stmt:
    for variable, extent in reversed(list(zip(variables, extents, strict=True))):
        body = For(variable, extent, "serial", body)
    return body


def _as_index(load: FlatLoad) -> Expr:
    return load if load.dtype is i64 else Cast(load, i64)


def _wide(load: FlatLoad) -> Expr:
    dtype = evaluation_dtype(load.dtype)
    return load if load.dtype is dtype else Cast(load, dtype)


def _narrow(expr: Expr, buffer: Buffer) -> Expr:
    return expr if expr.dtype is buffer.dtype else Cast(expr, buffer.dtype)


def _put(buffer: Buffer, offset: Affine, value: Expr) -> Store:
    return Store(((buffer, offset),), (value,))
