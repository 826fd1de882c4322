"""Questions of primitives: conflicts of a loop, and violated orders."""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.program import Alloc, Fused, Seq
from tensorlang.ir.walk import iterate
from tensorlang.poly.legality import find_conflict, find_order_violation
from tensorlang.schedule.place_inits import place_inits
from tests.poly import definitions as ops
from tests.poly.examples import EXAMPLES, fused_matmul, tiled
from tests.poly.scheduling import loop, naive


def test_data_loops_have_no_conflict_and_the_reduction_has() -> None:
    program = naive(ops.matmul())
    assert find_conflict(program, loop(program, "i").variable) is None
    assert find_conflict(program, loop(program, "j").variable) is None
    found = find_conflict(program, loop(program, "k").variable)
    assert found is not None
    assert found.refuted
    assert found.accesses[0].startswith("C[i=0, j=0, k=")
    assert "writes C[0, 0]" in found.accesses[1]


def test_tile_loops_have_no_conflict() -> None:
    program = tiled()
    for name in ("i.o", "j.o", "i.i", "j.i"):
        assert find_conflict(program, loop(program, name).variable) is None


def test_a_scan_is_serial_along_its_axis_only() -> None:
    program = naive(ops.cumulative_sum())
    assert find_conflict(program, loop(program, "i").variable) is None
    found = find_conflict(program, loop(program, "j").variable)
    assert found is not None
    assert abs(found.loops["j"] - found.loops["j'"]) == 1


def test_fused_loop_is_asked_as_one() -> None:
    program = fused_matmul()
    handle = next(s.handle for s in iterate(program.body) if isinstance(s, Fused))
    assert find_conflict(program, handle) is None


def test_out_of_budget_is_not_proved() -> None:
    program = naive(ops.matmul())
    found = find_conflict(program, loop(program, "k").variable, budget=1)
    assert found is not None
    assert not found.refuted


def test_order_violation() -> None:
    program = place_inits(naive(ops.softmax()))
    assert find_order_violation(program) is None
    nests = next(s for s in iterate(program.body) if isinstance(s, Seq))
    swapped = Seq((nests.stmts[1], nests.stmts[0], *nests.stmts[2:]))

    def exchange(stmt: Alloc | Seq) -> Alloc | Seq:
        if stmt is nests:
            return swapped
        assert isinstance(stmt, Alloc)
        body = stmt.body
        assert isinstance(body, Alloc | Seq)
        return replace(stmt, body=exchange(body))

    assert isinstance(program.body, Alloc)
    found = find_order_violation(replace(program, body=exchange(program.body)))
    assert found is not None
    assert "top is read before it is written" in found.reason


def test_every_example_keeps_its_order() -> None:
    for make in EXAMPLES.values():
        assert find_order_violation(make()) is None
