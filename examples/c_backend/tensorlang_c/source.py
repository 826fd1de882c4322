"""A lowered program as C.

Input::                                     Output::

    for i in N:                                 for (int64_t i_0 = 0; i_0 < N_0; ++i_0) {
        Y[i] = X[i] * 2                             Y_1[i_0] = (X_0[i_0] * 2.0f);
                                                }

Loops of every kind are plain loops: iterations that may run at once may also run in order. Names
get a number, since a program's names need not be C's.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlang.dtypes import DType
from tensorlang.errors import CompileError
from tensorlang.ir.affine import Affine
from tensorlang.ir.lowered import Allocate, Buffer, LoweredProgram, PrefetchLine, Store
from tensorlang.ir.program import For, If, Seq, Stmt
from tensorlang_c.expressions import C_TYPES, Names, condition, expression, index
from tensorlang_c.prelude import PRELUDE

ENTRY = "tensorlang_entry"


def c_source(program: LoweredProgram) -> str:
    """Return a C file that defines the entry function."""
    names = Names()
    lines = [PRELUDE, f"int64_t {ENTRY}(const slot *arguments) {{"]
    slot = 0
    for buffer in program.inputs + program.outputs:
        pointer = f"{_type(buffer.dtype)} *{names.buffer(buffer)}"
        lines.append(f"    {pointer} = arguments[{slot}].pointer;")
        slot += 1
    for scalar in program.scalars:
        name = names.scalar(scalar)
        lines.append(f"    {_type(scalar.dtype)} {name};")
        lines.append(f"    memcpy(&{name}, &arguments[{slot}], sizeof {name});")
        slot += 1
    for size in program.sizes:
        lines.append(f"    int64_t {names.variable(size)} = arguments[{slot}].integer;")
        slot += 1
    lines.append(f"    int64_t *status = arguments[{slot + 1}].pointer;")
    lines.append("    status[0] = -1;")
    lines += [f"    {line}" for line in _statement(program.body, names)]
    lines += ["    return status[0] >= 0;", "}", ""]
    return "\n".join(lines)


def _type(dtype: DType) -> str:
    if dtype.name not in C_TYPES:
        raise CompileError(f'the backend "c" has no {dtype.name}; the backend "cpu" has')
    return C_TYPES[dtype.name]


def _statement(stmt: Stmt, names: Names) -> Iterator[str]:
    match stmt:
        case Seq(stmts=stmts):
            for child in stmts:
                yield from _statement(child, names)
        case For(variable=variable, extent=extent, body=body):
            i = names.variable(variable)
            yield f"for (int64_t {i} = 0; {i} < {index(extent, names)}; ++{i}) {{"
            yield from _indented(body, names)
            yield "}"
        case If(condition=forms, then=then, otherwise=otherwise):
            yield f"if ({condition(forms, names)}) {{"
            yield from _indented(then, names)
            if otherwise is not None:
                yield "} else {"
                yield from _indented(otherwise, names)
            yield "}"
        case Store(targets=targets, values=values):
            yield from _store(targets, [expression(value, names) for value in values], names)
        case Allocate(buffer=buffer, body=body):
            yield "{"
            yield from (f"    {line}" for line in _allocation(buffer, stmt.zeroed, names))
            yield from _indented(body, names)
            yield "}"
        case PrefetchLine(buffer=buffer, offset=offset, locality=locality):
            # the line may lie outside the buffer, where C knows no pointer
            base, size = names.buffer(buffer), f"sizeof({_type(buffer.dtype)})"
            address = f"(uintptr_t){base} + {size} * (uintptr_t)({index(offset, names)})"
            yield f"__builtin_prefetch((const void *)({address}), 0, {locality});"
        case _:
            raise TypeError(f"{type(stmt).__name__} is not a statement of a lowered program")


def _indented(body: Stmt, names: Names) -> Iterator[str]:
    for line in _statement(body, names):
        yield f"    {line}"


def _store(
    targets: tuple[tuple[Buffer, Affine], ...], values: list[str], names: Names
) -> Iterator[str]:
    if len(targets) == 1:
        ((buffer, offset),) = targets
        yield f"{names.buffer(buffer)}[{index(offset, names)}] = {values[0]};"
        return
    yield "{"  # all values are computed before the first is stored
    for number, ((buffer, _), value) in enumerate(zip(targets, values, strict=True)):
        yield f"    {_type(buffer.dtype)} value_{number} = {value};"
    for number, (buffer, offset) in enumerate(targets):
        yield f"    {names.buffer(buffer)}[{index(offset, names)}] = value_{number};"
    yield "}"


def _allocation(buffer: Buffer, zeroed: bool, names: Names) -> Iterator[str]:
    size = f"sizeof({_type(buffer.dtype)}) * ({index(buffer.size, names)})"
    name = names.buffer(buffer)
    function = "allocate_zeroed" if zeroed else "allocate"
    yield f"__attribute__((cleanup(release))) {_type(buffer.dtype)} *{name} = {function}({size});"
    yield f"if (!{name}) return 2;"
