from dataclasses import replace

import pytest

from tensorlang.dtypes import bool_, f32, f64, i32, i64
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Scalar, Stage, Tensor
from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Cast,
    Const,
    IndexValue,
    Load,
    Placeholder,
    ScalarRef,
    Select,
    index_from_value,
)
from tensorlang.ir.lowered import (
    Allocate,
    BoundsCheck,
    Buffer,
    CheckSite,
    FlatLoad,
    LoweredProgram,
    PrefetchLine,
    Store,
)
from tensorlang.ir.program import (
    Alloc,
    Barrier,
    Compute,
    For,
    Fused,
    If,
    Layout,
    Prefetch,
    Program,
    Run,
    Seq,
)
from tensorlang.ir.verify import VerificationError, verify_lowered, verify_scheduled
from tensorlang.ir.verify_lowered import LOWERED
from tensorlang.ir.verify_scheduled import SCHEDULED
from tests.interpreter.programs import Map, Matmul, axes, definition, loops, naive_program, program


def scheduled_fault(body, op):
    with pytest.raises(VerificationError) as error:
        verify_scheduled(Program(op.definition, op.definition.stages, body))
    return str(error.value)


def test_what_is_right_passes():
    op = Matmul()
    verify_scheduled(naive_program(op.definition))
    i, j, k, f, c, o = (Var(name) for name in "ijkfco")
    body = Seq((op.init(i, j), loops([(k, op.k)], op.update(i, j, k))))
    run = Fused(f, (i, j), (affine(op.m), affine(op.n)), "parallel", body, Run(c, o, 4))
    for piece in (run, replace(run, handle=o)):
        chunks = (affine(op.m) * op.n + 3) // 4
        verify_scheduled(program(op.definition, loops([(c, chunks)], piece)))


class Cases:
    """Each method returns a faulty scheduled body for y[i] = x[i] + 1, and the message."""

    def bound_twice(op, i):
        body = Seq((loops([(i, op.n)], op.compute(i)), loops([(i, op.n)], op.compute(i))))
        return body, "variables are bound once: i is bound a second time\n    for i in N:"

    def a_size_is_bound(op, i):
        return (
            loops([(op.n, 4)], op.compute(op.n)),
            "variables are bound once: N is bound a second time\n    for N in 4:",
        )

    def free_variable(op, i):
        return op.compute(i), (
            "variables have values where they are used: i has no value in i\n    Y[i] = X[i] + 1"
        )

    def extent_over_an_inner_loop(op, i):
        j = Var("j")
        return loops([(j, affine(i) + 1), (i, op.n)], op.compute(i)), (
            "variables have values where they are used: i has no value in i + 1\n"
            "    for j in i + 1:"
        )

    def extent_from_data(op, i):
        extent = index_from_value(Cast(Load(op.x, (affine(0),)), i64))
        return loops([(i, extent)], op.compute(i)), (
            "control depends on no data: int(i64(X[0])) depends on data\n"
            "    for i in int(i64(X[0])):"
        )

    def symbolic_lanes(op, i):
        return loops([(i, op.n, "vectorized")], op.compute(i)), (
            "vectorized loops have constant extents: the extent N of the vectorized loop i is not "
            "constant\n    vectorized for i in N:"
        )

    def symbolic_fused_lanes(op, i):
        loop = Fused(Var("f"), (i,), (affine(op.n),), "unrolled", op.compute(i))
        return loop, (
            "vectorized loops have constant extents: the extents of the unrolled loop f are not "
            "constant\n    unrolled for f = (i) in (N):"
        )

    def box_of_another_rank(op, i):
        t = Tensor("T", op.y.shape, f32)
        return Alloc(t, (), (affine(op.n),), "global", Seq(())), (
            "storage ranks agree: T has 1 axes, its box 0 and 1\n    T = global f32[N]"
        )

    def layout_of_another_rank(op, i):
        t, layout = Tensor("T", op.y.shape, f32), Layout((), (), ())
        return Alloc(t, (affine(0),), (affine(op.n),), "global", Seq(()), layout), (
            "storage ranks agree: T has 1 axes, its layout 0\n"
            "    T = global f32[N] laid out () -> ()"
        )

    def layout_over_a_loop(op, i):
        t, p = Tensor("T", op.y.shape, f32), Var("p")
        layout = Layout((p,), (affine(p) + i,), (affine(9),))
        box = Alloc(t, (affine(0),), (affine(op.n),), "global", Seq(()), layout)
        return loops([(i, op.n)], box), (
            "storage ranks agree: the layout of T uses i\n"
            "    T = global f32[N] laid out (p) -> (i + p)"
        )

    def allocated_output(op, i):
        return Alloc(op.y, (affine(0),), (affine(op.n),), "global", Seq(())), (
            "storage is allocated once: Y has storage already\n    Y = global f32[N]"
        )

    def barrier_among_threads(op, i):
        return loops([(i, 4, "thread.x")], Barrier()), (
            "barriers are reached by all threads: a barrier stands inside the thread.x loop i\n"
            "    barrier"
        )

    def prefetch_of_nothing(op, i):
        other = Tensor("T", (affine(op.n),), f32)
        return Prefetch(other, (affine(0),), (affine(1),)), (
            "prefetches name storage: T is prefetched and has no storage there\n    prefetch T[0]"
        )

    def lowered_statement(op, i):
        return If((affine(op.n),), Seq(())), (
            "lowered statements are absent: If belongs to lowered programs\n    if N >= 0:"
        )

    def short_binding(op, i):
        return Compute(op.stage, ()), (
            "bindings cover the axes: Y binds 0 of its 1 axes\n    Y[()] = X[i] + 1"
        )

    def init_of_a_map(op, i):
        return loops([(i, op.n)], op.compute(i, part="update")), (
            "only reductions have parts: Y is no reduction and has an update\n    Y[i] = X[i] + 1"
        )

    def redirected_to_another_dtype(op, i):
        t = Tensor("T", op.y.shape, f64)
        body = Alloc(t, (affine(0),), t.shape, "global",
                     loops([(i, op.n)], op.compute(i, via=((op.x, t),))))  # fmt: skip
        return body, (
            "redirections keep dtype and rank: X is redirected to T, of another dtype or rank\n"
            "    Y[i] = T[i] + 1"
        )

    def redirected_twice(op, i):
        body = loops([(i, op.n)], op.compute(i, via=((op.x, op.y), (op.x, op.x))))
        return body, (
            "redirections keep dtype and rank: X is redirected twice\n    Y[i] = Y[i] + 1"
        )

    def no_storage(op, i):
        t = Tensor("T", op.y.shape, f32)
        body = Seq((Alloc(t, (affine(0),), t.shape, "global", Seq(())),
                    loops([(i, op.n)], op.compute(i, via=((op.x, t),)))))  # fmt: skip
        return body, (
            "accesses have storage: Y reads T, which has no storage there\n    Y[i] = T[i] + 1"
        )

    def no_storage_to_write(op, i):
        t = Tensor("T", op.y.shape, f32)
        return loops([(i, op.n)], op.compute(i, via=((op.y, t),))), (
            "accesses have storage: Y writes T, which has no storage there\n    T[i] = X[i] + 1"
        )

    def written_input(op, i):
        return loops([(i, op.n)], op.compute(i, via=((op.y, op.x),))), (
            "accesses have storage: Y writes the input X\n    X[i] = X[i] + 1"
        )

    def run_without_its_loop(op, i):
        c = Var("c")
        run = Fused(Var("f"), (i,), (affine(op.n),), "serial", op.compute(i), Run(c, Var("o"), 4))
        return loops([(c, op.n)], Seq((run, Seq(())))), (
            "runs stand directly in their position loops: f is a run of c and not the body of "
            "that loop\n    for f = (i) in (N)[4 * c : + 4]:"
        )


@pytest.mark.parametrize("name", [name for name in vars(Cases) if not name.startswith("__")])
def test_faulty_scheduled_programs(name):
    op, i = Map(), Var("i")
    body, expected = vars(Cases)[name](op, i)
    assert scheduled_fault(body, op) == expected


def test_every_scheduled_rule_has_a_case():
    tested = {vars(Cases)[name](Map(), Var("i"))[1].split(":")[0]
              for name in vars(Cases) if not name.startswith("__")}  # fmt: skip
    rules = {rule.__name__.replace("_", " ") for rule in SCHEDULED}
    assert rules <= tested


def test_an_unlisted_stage():
    op, other, i = Map(), Map(name="Z"), Var("i")
    fault = scheduled_fault(loops([(i, op.n)], Compute(other.stage, (affine(i),))), op)
    assert fault == (
        "instances are of listed stages: Z is not in the program's list of stages\n"
        "    Z[i] = X[i] + 1"
    )


X = Tensor("X", (affine(4),), f32)
ROW = Load(X, (affine(0),))


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (Call("frobnicate", (ROW,), f32), "frobnicate is no function"),
        (Call("add", (ROW,), f32), "add takes 2 operands, not 1"),
        (
            Call("add", (ROW, Const(1, i32)), f32),
            "add takes operands of one dtype, not f32 and i32",
        ),
        (Call("shl", (ROW, ROW), f32), "shl does not take f32"),
        (Call("add", (ROW, ROW), f64), "add of f32 cannot have dtype f64"),
        (Call("lt", (ROW, ROW), f32), "lt of f32 cannot have dtype f32"),
        (Select(ROW, ROW, ROW, f32), "the condition of a where has dtype f32"),
        (
            Select(Const(True, bool_), ROW, Const(1, i32), f32),
            "a where of dtype f32 has a branch of i32",
        ),
        (Bitcast(Const(1, i64), f32), "bitcast of i64 to f32"),
        (Load(X, ()), "X has 1 axes and is read with 0 indices"),
        (Cast(IndexValue(affine(1), bool_), f32), "an index expression has dtype bool"),
        (Cast(Const(1.5, i32), f32), "the literal 1.5 has dtype i32"),
        (Cast(Const(2**31, i32), f32), "the literal 2147483648 has dtype i32"),
        (Cast(Const(1, bool_), f32), "the literal 1 has dtype bool"),
        (Load(X, (affine(Var("z")),)), "z is used where it has no value"),
        (Placeholder("a", f32), "a state stands outside a combiner"),
        (ScalarRef(Scalar("alpha", f32)), "alpha is no parameter"),
        (Const(1, i32), "Y has dtype f32 and its value i32"),
        (FlatLoad(Buffer("x", f32, affine(4)), affine(0)), "x is a flat buffer"),
    ],
)
def test_faulty_stages(value, detail):
    i, y = Var("i"), Tensor("Y", (affine(4),), f32)
    stage = Stage((y,), axes((i, 4)), (value,))
    op = definition((X,), (stage,), (y,), ())
    with pytest.raises(VerificationError) as error:
        verify_scheduled(program(op, Seq(())))
    rule, _, rest = str(error.value).partition(": ")
    assert rule == "stages are well formed"
    assert rest.split("\n")[0] == detail


# --- lowered -------------------------------------------------------------------------------------


class Flat:
    """y[i] = x[i] over flat buffers."""

    def __init__(self):
        self.n, self.i = Var("N"), Var("i")
        self.x, self.y = (Buffer(name, f32, affine(self.n)) for name in "xy")

    def store(self, value=None, offset=None, buffer=None):
        value = FlatLoad(self.x, affine(self.i)) if value is None else value
        offset = affine(self.i) if offset is None else affine(offset)
        return Store(((buffer or self.y, offset),), (value,))

    def program(self, body, **more):
        return LoweredProgram("f", (self.n,), (), (self.x,), (self.y,), body, **more)

    def loop(self, body, kind="serial", extent=None):
        return For(self.i, self.n + affine(0) if extent is None else affine(extent), kind, body)


class LoweredCases:
    """Each method returns a faulty lowered body, and the message."""

    def instance(op):
        scheduled = Map()
        return Compute(scheduled.stage, (affine(0),)), (
            "scheduled statements are absent: Compute belongs to scheduled programs\n"
            "    Y[0] = X[0] + 1"
        )

    def barrier_among_threads(op):
        return op.loop(Barrier(), "thread.x", 4), (
            "barriers are reached by all threads: a barrier stands inside the thread.x loop i\n"
            "    barrier"
        )

    def prefetch_of_nothing(op):
        return PrefetchLine(Buffer("t", f32, affine(4)), affine(0)), (
            "prefetches name storage: t is prefetched and has no storage there\n    prefetch t[0]"
        )

    def unrolled(op):
        return op.loop(op.store(), "unrolled", 4), (
            "scheduled statements are absent: i is still to be unrolled\n    unrolled for i in 4:"
        )

    def free_address(op):
        return op.store(Const(1.0, f32)), (
            "variables have values where they are used: i has no value in i\n    y[i] = 1"
        )

    def free_variable_in_a_value(op):
        return op.store(offset=0), (
            "stored values are well formed: i is used where it has no value\n    y[0] = x[i]"
        )

    def extent_from_data(op):
        extent = index_from_value(Cast(FlatLoad(op.x, affine(0)), i64))
        return For(op.i, extent, "serial", op.store()), (
            "extents depend on no data: int(i64(x[0])) depends on data\n"
            "    for i in int(i64(x[0])):"
        )

    def symbolic_lanes(op):
        return op.loop(op.store(), "vectorized"), (
            "vectorized loops have constant extents: the extent N of the vectorized loop i is not "
            "constant\n    vectorized for i in N:"
        )

    def loop_in_lanes(op):
        return op.loop(loops([(Var("j"), 2)], op.store()), "vectorized", 4), (
            "vectorized loops hold stores and masks: For stands inside the vectorized loop i\n"
            "    vectorized for i in 4:"
        )

    def allocated_twice(op):
        return Allocate(op.x, Seq(())), (
            "storage is allocated once: x has storage already\n    x = global f32[N]"
        )

    def written_input(op):
        return op.loop(op.store(buffer=op.x)), (
            "stores have storage: the input x is written\n    x[i] = x[i]"
        )

    def foreign_buffer(op):
        return op.loop(op.store(buffer=Buffer("t", f32, affine(4)))), (
            "stores have storage: t is written and not allocated there\n    t[i] = x[i]"
        )

    def foreign_load(op):
        return op.loop(op.store(FlatLoad(Buffer("t", f32, affine(4)), affine(0)))), (
            "stores have storage: t is read and not allocated there\n    y[i] = t[0]"
        )

    def too_few_values(op):
        store = Store(((op.y, affine(op.i)), (op.y, affine(op.i))), (Const(1.0, f32),))
        return op.loop(store), ("stores have storage: 2 targets and 1 values\n    y[i], y[i] = 1")

    def wrong_dtype(op):
        return op.loop(op.store(Const(1, i32))), (
            "stored values are well formed: y has dtype f32 and its value i32\n    y[i] = 1"
        )

    def logical_load(op):
        return op.loop(op.store(ROW)), (
            "stored values are well formed: X is not a flat buffer\n    y[i] = X[0]"
        )

    def state(op):
        return op.loop(op.store(Placeholder("a", f32))), (
            "stored values are well formed: a is the state of a combiner\n    y[i] = a"
        )

    def symbolic_registers(op):
        return Allocate(Buffer("t", f32, affine(op.n), "local"), Seq(())), (
            "local buffers have constant sizes: the local buffer t has the size N\n"
            "    t = local f32[N]"
        )

    def bound_twice(op):
        return Seq((op.loop(op.store()), op.loop(op.store()))), (
            "variables are bound once: i is bound a second time\n    for i in N:"
        )

    def unknown_site(op):
        load = FlatLoad(op.x, affine(0), (BoundsCheck(affine(0), affine(1), 1),))
        return op.loop(op.store(load)), (
            "bounds checks have a listed site: there is no site 1\n    y[i] = x[0]"
        )


@pytest.mark.parametrize("name", [name for name in vars(LoweredCases) if not name.startswith("__")])
def test_faulty_lowered_programs(name):
    op = Flat()
    body, expected = vars(LoweredCases)[name](op)
    with pytest.raises(VerificationError) as error:
        verify_lowered(op.program(body, check_sites=(CheckSite("X", 0, "here"),)))
    assert str(error.value) == expected


def test_every_lowered_rule_has_a_case():
    tested = {vars(LoweredCases)[name](Flat())[1].split(":")[0]
              for name in vars(LoweredCases) if not name.startswith("__")}  # fmt: skip
    rules = {rule.__name__.replace("_", " ") for rule in LOWERED}
    assert rules <= tested


def test_a_right_lowered_program_passes():
    op = Flat()
    lane = Var("l")
    i = affine(op.i) * 4 + lane
    body = op.loop(
        loops([(lane, 4, "vectorized")], If((affine(op.n) - 1 - i,), op.store(Const(1.0, f32), i))),
        "parallel",
        (affine(op.n) + 3) // 4,
    )
    verify_lowered(op.program(body))


def test_a_buffer_of_an_unknown_size():
    op = Flat()
    x = Buffer("x", f32, affine(Var("Q")))
    with pytest.raises(VerificationError) as error:
        verify_lowered(LoweredProgram("f", (op.n,), (), (x,), (op.y,), Seq(())))
    assert str(error.value) == (
        "sizes of the caller's buffers are passed: Q is not\n    x = f32[Q]"
    )
