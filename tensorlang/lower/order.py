"""A stable merge sort in the grammar of lowered programs.

Input:  ``for j in N: P[i, j] = order(x[i, :])[j]``
Output: a copy of the row; passes over it that merge neighbouring runs of 1, 2, 4, ... elements from
        one half of a buffer into the other; a copy of the positions

A pass goes through all positions once: at the beginning of each pair of runs it notes where they
lie, and at every position it takes the lesser of the two first elements that are left, the left
one of equals. Extents of loops depend on sizes alone, so there are always enough passes for 2**63
elements; those that find the row in one run already do nothing. O(n log n) comparisons, 2 n
elements and positions of memory (Knuth, The Art of Computer Programming, vol. 3, 5.2.4).
"""

from __future__ import annotations

from tensorlang.dtypes import DType, bool_, evaluation_dtype, i64, is_float, u8
from tensorlang.ir.affine import ONE, Affine, Var, affine
from tensorlang.ir.definition import Order
from tensorlang.ir.expr import Call, Cast, Const, Expr, IndexValue, Select, value_atom
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, Store
from tensorlang.ir.program import Compute, For, If, Stmt
from tensorlang.ir.walk import sequence
from tensorlang.lower.buffers import Home

_LEFT, _MIDDLE, _RIGHT, _END, _WIDTH, _SOURCE, _FROM = range(7)
"""What the state of the sort holds: the two runs, their length, the half that is read."""


def lower_order(compute: Compute, order: Order, operand: Home, target: Home) -> Stmt:
    """Return the statements that write the order of one row."""
    stage, axis = compute.stage, order.axis
    count = stage.axes[axis].extent
    source_dtype = operand.buffer.dtype
    sort = _MergeSort(
        count,
        Buffer(f"{stage.name}.keys", source_dtype, count * 2, "global", 64),
        Buffer(f"{stage.name}.positions", i64, count * 2, "global", 64),
        Buffer(f"{stage.name}.state", i64, affine(7), "local", 8),
        order.descending,
    )

    def at(home: Home, position: Affine) -> Affine:
        indices = list(compute.binding)
        indices[axis] = position
        return home.offset(tuple(indices))

    first, last = Var("t"), Var("t")
    fill = For(
        first, count, "serial",
        sequence(
            _put(sort.keys, affine(first), FlatLoad(operand.buffer, at(operand, affine(first)))),
            _put(sort.positions, affine(first), IndexValue(affine(first), i64)),
        ),
    )  # fmt: skip
    place = sort.index(_SOURCE) + last
    found = FlatLoad(sort.positions, place)
    drain = For(last, count, "serial", _put(target.buffer, at(target, affine(last)), found))
    body: Stmt = sequence(fill, *sort.passes(), drain)
    for buffer in (sort.state, sort.positions, sort.keys):
        body = Allocate(buffer, body)
    return body


class _MergeSort:
    """The buffers of one sort, and the statements over them."""

    def __init__(
        self, count: Affine, keys: Buffer, positions: Buffer, state: Buffer, descending: bool
    ) -> None:
        self.count = count
        self.keys = keys
        self.positions = positions
        self.state = state
        self.descending = descending

    def value(self, slot: int) -> Expr:
        """Return a number of the state."""
        return FlatLoad(self.state, affine(slot))

    def index(self, slot: int) -> Affine:
        """Return a number of the state as an index."""
        return affine(value_atom(self.value(slot)))

    def set(self, slot: int, value: Expr | Affine) -> Store:
        """Return the store of a number of the state."""
        expr = IndexValue(value, i64) if isinstance(value, Affine) else value
        return _put(self.state, affine(slot), expr)

    def passes(self) -> tuple[Stmt, ...]:
        """Return the passes that make one run of the elements."""
        number = max(self.count.constant - 1, 0).bit_length() if self.count.is_constant else 63
        again = self.count - 1 - self.index(_WIDTH)
        one = If((again,), self.one_pass())
        loop = For(Var("round"), affine(number), "serial", one)
        return self.set(_WIDTH, ONE), self.set(_SOURCE, affine(0)), loop

    def one_pass(self) -> Stmt:
        """Return a pass from one half into the other."""
        t = Var("t")
        body = sequence(
            If((affine(t) - self.index(_END),), self.next_runs(affine(t))),
            self.set(_FROM, Cast(self.takes_right(), i64)),
            *self.move(affine(t)),
        )
        return sequence(
            self.set(_END, affine(0)),
            For(t, self.count, "serial", body),
            self.set(_WIDTH, self.index(_WIDTH) * 2),
            self.set(_SOURCE, self.count - self.index(_SOURCE)),
        )

    def next_runs(self, t: Affine) -> Stmt:
        """Return the notes on the pair of runs that begins at ``t``."""
        width = self.index(_WIDTH)
        return sequence(
            self.set(_LEFT, t),
            self.set(_MIDDLE, _least(t + width, self.count)),
            self.set(_RIGHT, self.index(_MIDDLE)),
            self.set(_END, _least(t + width * 2, self.count)),
        )

    def takes_right(self) -> Expr:
        """Return whether the next element comes from the right run; reads only what is there."""
        left_is_empty = Call("ge", (self.value(_LEFT), self.value(_MIDDLE)), bool_)
        right_is_empty = Call("ge", (self.value(_RIGHT), self.value(_END)), bool_)
        left, right = (self.key(self.index(slot)) for slot in (_LEFT, _RIGHT))
        first = self.is_less(left, right) if self.descending else self.is_less(right, left)
        either = Select(right_is_empty, Const(False, bool_), first, bool_)
        return Select(left_is_empty, Const(True, bool_), either, bool_)

    def key(self, position: Affine) -> Expr:
        """Return an element in the dtype in which elements are compared."""
        load = FlatLoad(self.keys, self.index(_SOURCE) + position)
        wanted = _compared_in(load.dtype)
        return load if load.dtype is wanted else Cast(load, wanted)

    def is_less(self, left: Expr, right: Expr) -> Expr:
        """Return ``left < right``, where NaN is above every number."""
        less = Call("lt", (left, right), bool_)
        if not is_float(left.dtype):
            return less
        only_right = Call(
            "and",
            (Call("isnan", (right,), bool_), Call("not", (Call("isnan", (left,), bool_),), bool_)),
            bool_,
        )
        return Call("or", (less, only_right), bool_)

    def move(self, t: Affine) -> tuple[Stmt, ...]:
        """Return the move of an element to ``t`` in the other half; ``_FROM`` is 1 for the right.

        Multiplication chooses without a jump, which would be foretold wrongly half of the time.
        """
        left, right, takes = self.index(_LEFT), self.index(_RIGHT), self.index(_FROM)
        source = self.index(_SOURCE)
        origin = left + takes * (right - left) + source
        destination = self.count - source + t
        return (
            _put(self.keys, destination, FlatLoad(self.keys, origin)),
            _put(self.positions, destination, FlatLoad(self.positions, origin)),
            self.set(_LEFT, left + 1 - takes),
            self.set(_RIGHT, right + takes),
        )


def _compared_in(dtype: DType) -> DType:
    return u8 if dtype is bool_ else evaluation_dtype(dtype)


def _least(left: Affine, right: Affine) -> Expr:
    return Call("minimum", (IndexValue(left, i64), IndexValue(right, i64)), i64)


def _put(buffer: Buffer, offset: Affine, value: Expr) -> Store:
    return Store(((buffer, offset),), (value,))
