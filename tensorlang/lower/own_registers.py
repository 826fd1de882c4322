"""Give each thread its own part of storage in registers that a whole block writes.

Input (4 elements of each row for each of 16 threads)::

    C.local = local f32[4096]
    C.local[256*thread.y + 64*i + 4*thread.x + j] = ...           # i < 4, j < 4

Output::

    C.local = local f32[16]
    C.local[4*i + j] = ...

Registers cannot be read by another thread, so each element must be touched by one thread only: the
place of the thread in an address must be the same in every nest that uses the storage. Then the
addresses, written in mixed radix, lose the digits that are the thread's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tensorlang.errors import CompileError
from tensorlang.ir.affine import ZERO, Affine, Var, affine, substitute, variables_of
from tensorlang.ir.expr import iterate as iterate_exprs
from tensorlang.ir.interval import bounds
from tensorlang.ir.lowered import Buffer, FlatLoad, Store
from tensorlang.ir.program import For, If, Stmt
from tensorlang.ir.walk import children_of
from tensorlang.lower.kernel import Kernel
from tensorlang.lower.replace_buffer import map_accesses


@dataclass(frozen=True, slots=True)
class Digit:
    """A thread's place in an address: ``step * thread.axis``, for ``count`` threads."""

    axis: int
    step: int
    count: int

    def __str__(self) -> str:
        return f"{self.step} * thread.{'xyz'[self.axis]} (of {self.count})"


@dataclass(frozen=True, slots=True)
class _Access:
    buffer: Buffer
    offset: Affine
    counts: tuple[int, int, int]
    extents: Mapping[Var, Affine]


def own_registers(kernel: Kernel) -> Kernel:
    """Return ``kernel`` with the registers of a block divided among its threads.

    Raises CompileError where an element would be touched by two threads.
    """
    if not kernel.registers:
        return kernel
    shared: dict[Buffer, tuple[Digit, ...]] = {}
    addresses: dict[tuple[Buffer, Affine], Affine] = {}
    for access in _accesses(kernel, kernel.body, kernel.block, {}):
        digits = _digits(kernel, access)
        known = shared.setdefault(access.buffer, digits)
        if known != digits:
            raise _refusal(
                kernel,
                access.buffer,
                f"one nest gives the elements to the threads by {_text(known)}, another by "
                f"{_text(digits)}",
            )
        addresses[access.buffer, access.offset] = _own_address(kernel, access, digits)
    buffers = {buffer: _own_buffer(buffer, digits) for buffer, digits in shared.items()}

    def moved(buffer: Buffer, offset: Affine) -> tuple[Buffer, Affine]:
        if buffer not in buffers:
            return buffer, offset
        return buffers[buffer], addresses.get((buffer, offset), offset)

    return replace(kernel, body=map_accesses(kernel.body, moved), registers=())


def _accesses(
    kernel: Kernel, stmt: Stmt, counts: tuple[int, int, int], extents: Mapping[Var, Affine]
) -> Iterator[_Access]:
    """Yield the accesses of a block's registers, and how many threads make each."""
    match stmt:
        case Store():
            places = list(stmt.targets)
            for node in iterate_exprs(*stmt.values):
                if isinstance(node, FlatLoad):
                    places.append((node.buffer, node.offset))
            for buffer, offset in places:
                if buffer in kernel.registers:
                    yield _Access(buffer, offset, counts, extents)
        case For():
            extents = {**extents, stmt.variable: stmt.extent}
        case If():
            limited = list(counts)
            for form in stmt.condition:
                for axis, thread in enumerate(kernel.threads):
                    rest = form + thread
                    if rest.is_constant:
                        limited[axis] = min(limited[axis], rest.constant + 1)
            yield from _accesses(kernel, stmt.then, (limited[0], limited[1], limited[2]), extents)
            if stmt.otherwise is not None:
                yield from _accesses(kernel, stmt.otherwise, counts, extents)
            return
        case _:
            pass
    for child in children_of(stmt):
        yield from _accesses(kernel, child, counts, extents)


def _digits(kernel: Kernel, access: _Access) -> tuple[Digit, ...]:
    """Return the digits of the threads in an address, the largest step first."""
    found: list[Digit] = []
    rest = access.offset
    for axis, thread in enumerate(kernel.threads):
        step = rest.coefficient(thread)
        rest = rest - affine(thread) * step
        if access.counts[axis] > 1:
            if step <= 0:
                raise _refusal(
                    kernel,
                    access.buffer,
                    f"threads that differ along {'xyz'[axis]} touch the same element "
                    f"{access.buffer}[{access.offset}]",
                )
            found.append(Digit(axis, step, access.counts[axis]))
    if variables_of(rest) & set(kernel.threads):
        raise _refusal(
            kernel,
            access.buffer,
            f"the address {access.offset} is no sum of the thread's place and the rest",
        )
    return tuple(sorted(found, key=lambda digit: -digit.step))


def _own_address(kernel: Kernel, access: _Access, digits: tuple[Digit, ...]) -> Affine:
    """Return the address among the thread's own elements."""
    form = substitute(access.offset, dict.fromkeys(kernel.threads, ZERO))
    for digit in digits:
        own = _without_digit(form, digit, access.extents)
        if own is None:
            raise _refusal(
                kernel,
                access.buffer,
                f"in the address {access.offset} other terms reach into {digit}",
            )
        form = own
    return form


def _without_digit(form: Affine, digit: Digit, extents: Mapping[Var, Affine]) -> Affine | None:
    """Return ``form`` with what lies above ``digit`` moved down, None if something lies in it."""
    period = digit.step * digit.count
    high_constant, low_constant = divmod(form.constant, period)
    low, high = affine(low_constant), affine(high_constant * digit.step)
    for atom, coefficient in form.terms:
        if coefficient % period == 0:
            high = high + affine(atom) * (coefficient // digit.count)
        else:
            low = low + affine(atom) * coefficient
    interval = bounds(low, extents)
    if interval is None or not (interval[0].is_constant and interval[1].is_constant):
        return None
    inside = interval[0].constant >= 0 and interval[1].constant < digit.step
    return high + low if inside else None


def _own_buffer(buffer: Buffer, digits: tuple[Digit, ...]) -> Buffer:
    size = buffer.size.constant
    for digit in digits:
        size = -(-size // (digit.step * digit.count)) * digit.step
    return replace(buffer, size=affine(size))


def _text(digits: tuple[Digit, ...]) -> str:
    return " + ".join(map(str, digits)) or "none"


def _refusal(kernel: Kernel, buffer: Buffer, reason: str) -> CompileError:
    return CompileError(
        f"{buffer} of {kernel.name} lies in registers, which other threads cannot see, but "
        f"{reason}.\nSplit and bind the loops of every nest that uses it in the same way, or take "
        'scope="shared".'
    )
