"""The proof accepts right programs and refuses broken ones, with a case in which they fail."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import Expr
from tensorlang.ir.program import Alloc, Compute, For, Program, Seq, Stmt
from tensorlang.ir.walk import sequence
from tensorlang.poly.proof import Evidence, prove
from tensorlang.poly.witness import Counterexample
from tensorlang.schedule.place_inits import place_inits
from tests.poly import definitions as ops
from tests.poly.examples import EXAMPLES, blocked, blur_rows_at, packed, tiled
from tests.poly.scheduling import (
    box_below,
    cache_read,
    copy_nest,
    copy_stage,
    fuse,
    local_copy,
    loop,
    naive,
    redirect,
    replace_stmt,
    set_kind,
    split,
    split_fused,
    transform,
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_right_programs_are_proved(name: str) -> None:
    evidence = prove(EXAMPLES[name]())
    assert evidence.ok, str(evidence)


def refused(program: Program, claim: str, reason: str) -> Counterexample:
    evidence = prove(program)
    assert not evidence.ok
    found = evidence.counterexample
    assert found is not None
    assert found.refuted, str(evidence)
    assert (found.claim, reason in found.reason) == (claim, True), str(evidence)
    return found


def change(program: Program, test: Callable[[Stmt], bool], edit: Callable[[Stmt], Stmt]) -> Program:
    count = 0

    def visit(stmt: Stmt) -> Stmt:
        nonlocal count
        if test(stmt):
            count += 1
            return edit(stmt)
        return stmt

    program = transform(program, visit)
    assert count == 1, f"the mutation hit {count} statements"
    return program


def is_part(part: str) -> Callable[[Stmt], bool]:
    return lambda stmt: isinstance(stmt, Compute) and stmt.part == part


def copies_into(name: str) -> Callable[[Stmt], bool]:
    def test(stmt: Stmt) -> bool:
        if not isinstance(stmt, Compute) or stmt.stage.copies is None:
            return False
        return stmt.stage.name == name

    return test


def drop(stmt: Stmt) -> Stmt:
    return Seq(())


def without_guard(number: int) -> Callable[[Stmt], Stmt]:
    def edit(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Compute)
        guard = stmt.guard[:number] + stmt.guard[number + 1 :]
        return replace(stmt, guard=guard)

    return edit


def test_guard_dropped_from_update() -> None:
    found = refused(change(packed(), is_part("update"), without_guard(0)), "bounds", "A")
    assert found.sizes["M"] % 6 != 0
    assert found.compute is not None
    assert found.compute.part == "update"


def test_guard_dropped_from_copy_out() -> None:
    found = refused(change(packed(), copies_into("C"), without_guard(1)), "bounds", "C")
    assert found.sizes["N"] % 16 != 0


def test_guard_dropped_where_only_the_reduction_notices() -> None:
    """K's tail reads past A, too; with K a multiple of nothing the update count is wrong."""
    program = place_inits(split(naive(ops.triangular()), "k", 8))
    found = refused(change(program, is_part("update"), without_guard(0)), "reductions", "outside")
    assert found.sizes["N"] >= 1


def test_copy_box_one_too_small() -> None:
    program = packed()
    inner = loop(program, "B.local.c1")
    program = replace_stmt(program, inner, replace(inner, extent=affine(15)))
    found = refused(program, "flow", "B.local is read before it is written")
    assert found.loops["j.i"] == 15


def test_alloc_one_too_small() -> None:
    program = change(
        packed(),
        lambda stmt: isinstance(stmt, Alloc) and stmt.tensor.name == "B.local",
        lambda stmt: replace(stmt, shape=(stmt.shape[0], affine(15))),  # type: ignore[union-attr]
    )
    refused(program, "bounds", "B.local")


def is_tile_body(stmt: Stmt) -> bool:
    """The sequence of init, update and copy-out of one tile."""
    return isinstance(stmt, Seq) and len(stmt.stmts) == 3


def test_copy_out_before_the_sum() -> None:
    def edit(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Seq)
        init, update, out = stmt.stmts
        return Seq((init, out, update))

    program = change(packed(), is_tile_body, edit)
    found = refused(program, "reductions", "C is read before its last update")
    assert found.sizes["K"] >= 1


def test_init_dropped() -> None:
    found = refused(change(packed(), is_part("init"), drop), "flow", "has no init")
    assert "C.local" in found.accesses[0]


def test_init_dropped_of_an_empty_sum() -> None:
    program = place_inits(naive(ops.matmul(3, 3, 0)))
    refused(change(program, is_part("init"), drop), "flow", "C is never written")


def test_init_after_its_update() -> None:
    def edit(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Seq)
        init, update, out = stmt.stmts
        return Seq((update, init, out))

    refused(change(packed(), is_tile_body, edit), "flow", "has no init")


def test_init_twice() -> None:
    program = place_inits(naive(ops.matmul()))
    program = change(
        program,
        lambda stmt: isinstance(stmt, Seq) and len(stmt.stmts) == 2,
        lambda stmt: Seq((stmt.stmts[0], stmt.stmts[0], stmt.stmts[1])),  # type: ignore[union-attr]
    )
    refused(program, "reductions", "two inits")


@pytest.mark.parametrize(
    ("k", "claim", "reason"),
    [(None, "flow", "C is never written"), (5, "reductions", "two inits")],
)
def test_init_inside_the_reduction_loop(k: int | None, claim: str, reason: str) -> None:
    program = naive(ops.matmul(k=k))
    inner = loop(program, "k")
    placed = place_inits(program)
    init = next(s for s in _statements(placed) if is_part("init")(s))
    update = next(s for s in _statements(placed) if is_part("update")(s))
    body = replace(inner, body=sequence(init, update))
    refused(replace_stmt(program, inner, body), claim, reason)


def _statements(program: Program) -> list[Stmt]:
    from tensorlang.ir.walk import iterate

    return list(iterate(program.body))


def test_parallel_reduction_loop() -> None:
    program = place_inits(naive(ops.matmul()))
    found = refused(set_kind(program, "k", "parallel"), "concurrency", "parallel loop k")
    assert found.loops["k"] != found.loops["k'"]


def test_parallel_loop_over_blocks_of_the_sum() -> None:
    refused(set_kind(blocked(), "k.o", "parallel"), "concurrency", "parallel loop k.o")


def test_vectorized_recurrence() -> None:
    refused(set_kind(naive(ops.cumulative_sum()), "j", "vectorized"), "concurrency", "loop j")


def test_copy_in_dropped() -> None:
    refused(change(blocked(), copies_into("C.local"), drop), "flow", "has no init")


def test_copy_out_dropped() -> None:
    refused(change(blocked(), copies_into("C"), drop), "reductions", "continue the same value")


def test_copy_out_dropped_from_private_tiles() -> None:
    refused(change(packed(), copies_into("C"), drop), "flow", "output C is never written")


def test_packing_dropped() -> None:
    refused(change(packed(), copies_into("B.local"), drop), "flow", "B.local is read before")


def test_reduction_loop_one_short() -> None:
    program = blocked()
    inner = loop(program, "k.i")
    program = replace_stmt(program, inner, replace(inner, extent=affine(255)))
    found = refused(program, "reductions", "never added")
    assert found.sizes["K"] > 255


def test_reduction_loop_one_too_long() -> None:
    program = place_inits(naive(ops.row_sums_of_squares()))
    inner = loop(program, "k")
    program = replace_stmt(program, inner, replace(inner, extent=inner.extent + 1))
    refused(program, "bounds", "squares")


def test_data_loop_one_short() -> None:
    program = naive(ops.blur())
    inner = loop(program, "i", 1)
    program = replace_stmt(program, inner, replace(inner, extent=inner.extent - 1))
    found = refused(program, "flow", "never written")
    assert found.sizes["H"] >= 1


def test_buffer_hoisted_out_of_a_parallel_loop() -> None:
    program = blur_rows_at()
    outer = loop(program, "i.o")
    inside = outer.body
    assert isinstance(inside, Alloc)
    hoisted = replace(
        inside,
        origin=(affine(0), affine(0)),
        shape=inside.tensor.shape,
        body=replace(outer, body=inside.body),
    )
    found = refused(replace_stmt(program, outer, hoisted), "concurrency", "of rows")
    assert found.loops["i.o"] != found.loops["i.o'"]


def test_swapped_binding() -> None:
    def swap(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Compute)
        return replace(stmt, binding=(stmt.binding[1], stmt.binding[0], *stmt.binding[2:]))

    program = change(place_inits(naive(ops.matmul())), is_part("update"), swap)
    found = refused(program, "bounds", "storage")
    assert found.sizes["M"] != found.sizes["N"]


def test_swapped_binding_of_a_square() -> None:
    def swap(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Compute)
        return replace(stmt, binding=(stmt.binding[1], stmt.binding[0], *stmt.binding[2:]))

    program = change(place_inits(naive(ops.matmul(8, 8, 8))), is_part("update"), swap)
    refused(program, "flow", "no init")


def test_shifted_init() -> None:
    def shift(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Compute)
        return replace(stmt, binding=(stmt.binding[0], stmt.binding[1] + 1), guard=())

    refused(change(packed(), is_part("init"), shift), "bounds", "C.local")


def test_reduction_point_added_twice() -> None:
    def twice(stmt: Stmt) -> Stmt:
        return For(Var("again"), affine(2), "serial", stmt)

    program = change(place_inits(naive(ops.matmul())), is_part("update"), twice)
    found = refused(program, "reductions", "added twice")
    assert {found.loops["again"], found.loops["again'"]} == {0, 1}


def test_ordered_reduction_out_of_order() -> None:
    program = place_inits(naive(ops.ordered_sum()))

    def backwards(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Compute)
        last = program.definition.sizes[1]
        return replace(stmt, binding=(stmt.binding[0], affine(last) - 1 - stmt.binding[1]))

    refused(change(program, is_part("update"), backwards), "reductions", "out of order")


def test_unordered_reduction_may_run_backwards() -> None:
    program = place_inits(naive(ops.matmul()))

    def backwards(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Compute)
        i, j, k = stmt.binding
        return replace(stmt, binding=(i, j, affine(program.definition.sizes[1]) - 1 - k))

    evidence = prove(change(program, is_part("update"), backwards))
    assert evidence.ok, str(evidence)


def test_stages_in_the_wrong_order() -> None:
    program = naive(ops.blur())
    nests = program.body
    assert isinstance(nests, Alloc)
    assert isinstance(nests.body, Seq)
    swapped = replace(nests, body=Seq(tuple(reversed(nests.body.stmts))))
    refused(replace(program, body=swapped), "flow", "rows is read before it is written")


def test_gather_needs_the_whole_table() -> None:
    program = naive(ops.gather())
    first = loop(program, "i", 0)
    program = replace_stmt(program, first, replace(first, extent=first.extent - 1))
    refused(program, "flow", "doubled is read before it is written")


def test_stale_values_of_another_iteration_are_not_seen() -> None:
    """Memory allocated inside a loop holds nothing at the start of the next iteration."""
    program = tiled()
    program = place_inits(program)
    init = next(s for s in _statements(program) if is_part("init")(s))
    assert isinstance(init, Compute)
    first_only = replace(init, guard=(*init.guard, -affine(loop(program, "i.o").variable)))
    refused(replace_stmt(program, init, first_only), "flow", "has no init")


@pytest.mark.parametrize("places", ["i", "ji", "jji"])
def test_copy_of_a_copy_of_nothing(places: str) -> None:
    """What nobody wrote stays unwritten, through however many copies it comes."""
    program = naive(ops.blur())
    rows = program.stages[0].tensor
    for name in places:
        program = nested_cache_read(program, rows, name)
    evidence = prove(program)
    assert evidence.ok, str(evidence)
    first = loop(program, "i", 0)
    program = replace_stmt(program, first, replace(first, extent=first.extent - 1))
    found = refused(program, "flow", "before it is written")
    assert found.accesses[-1].startswith("then blur[")


def nested_cache_read(program: Program, tensor: Tensor, at: str) -> Program:
    """Copy what the second nest reads: its loops are the last of their names."""
    outer = [s for s in _statements(program) if isinstance(s, For) and s.variable.name == at][-1]
    box = box_below(program, outer, tensor)
    target = local_copy(tensor)
    stage = copy_stage(target, tensor)
    inner = redirect(outer.body, tensor, target)
    nest = sequence(copy_nest(stage, box), inner)
    inside = Alloc(target, tuple(o for o, _ in box), tuple(n for _, n in box), "global", nest)
    program = replace(program, stages=(*program.stages, stage))
    return replace_stmt(program, outer, replace(outer, body=inside))


def test_fused_loop_that_is_parallel_over_a_sum() -> None:
    program = fuse(naive(ops.triangular()), "i", "k")
    evidence = prove(place_inits(split_fused(program, 16, "parallel")))
    found = evidence.counterexample
    assert found is not None
    assert found.claim == "concurrency"
    assert not found.refuted  # the two points may lie in one piece
    assert found.reason == ("two iterations of parallel loop i.k.o may touch one element of sums")


def test_evidence_is_readable() -> None:
    text = str(prove(change(packed(), is_part("init"), drop)))
    lines = text.splitlines()
    assert lines[0].split()[0] == "proved"
    assert lines[2].split()[0] == "FALSE"
    assert "an update finds nothing to continue: C.local has no init" in text
    assert "sizes:  M = " in text
    assert "loops:  j.o = " in text


def test_out_of_budget_is_not_proved() -> None:
    evidence = prove(blocked(), budget=1000)
    assert not evidence.ok
    found = evidence.counterexample
    assert found is not None
    assert not found.refuted
    assert "more operations than the budget allows" in found.reason
    assert prove(blocked()).ok  # and the context is usable again


@pytest.mark.parametrize(("name", "budget"), [("packed", 150_000), ("blocked", 300_000)])
def test_the_work_of_a_proof_is_bounded(name: str, budget: int) -> None:
    """In isl's operations, which do not vary with the machine: about 0.4 ms for a thousand."""
    assert prove(EXAMPLES[name](), budget).ok


def test_padded_tiles() -> None:
    """Outside the matrix a private tile may hold anything, as long as nobody sees it."""
    program = tiled()
    a, b = program.definition.inputs
    program = place_inits(cache_read(cache_read(program, a, "i.o"), b, "j.o"))

    def unguarded(stmt: Stmt) -> Stmt:
        is_tile = isinstance(stmt, Compute) and stmt.stage.is_reduction
        return replace(stmt, guard=()) if is_tile else stmt

    no_guard = transform(program, unguarded)
    evidence = prove(no_guard)
    assert evidence.ok, str(evidence)
    refused(change(no_guard, copies_into("C"), without_guard(0)), "bounds", "C")


def test_whole_reductions_are_refused() -> None:
    evidence = prove(naive(ops.matmul()))
    assert isinstance(evidence, Evidence)
    assert evidence.counterexample is not None
    assert "the init of Stage(C) is not placed" in evidence.counterexample.reason


def test_each_thread_proves_on_its_own() -> None:
    with ThreadPoolExecutor(4) as pool:
        programs = [EXAMPLES[name]() for name in ("packed", "blur, rows at tiles", "argmax")] * 3
        assert all(evidence.ok for evidence in pool.map(prove, programs))


def test_deep_expressions_are_no_problem() -> None:
    n = Var("N")
    x, out = ops.tensor("x", n), ops.tensor("out", n)

    def value(i: Affine) -> Expr:
        result: Expr = ops.at(x, i)
        for _ in range(3000):
            result = ops.add(result, ops.at(x, i))
        return result

    program = naive(ops.define("deep", (n,), (x,), (ops.map_stage(out, value),)))
    assert prove(program).ok
