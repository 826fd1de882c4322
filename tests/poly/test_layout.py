"""Layouts: packing in panels is a layout, folding two elements together is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.program import Alloc, Layout, Program, Stmt
from tensorlang.poly.proof import Evidence, prove
from tests.poly.examples import packed
from tests.poly.scheduling import transform


def with_layout(
    indices: Callable[[Affine, Affine], tuple[Affine, ...]],
    shape: Callable[[tuple[Affine, ...]], tuple[Affine, ...]],
) -> Program:
    def edit(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Alloc) or stmt.tensor.name != "B.local":
            return stmt
        k, n = Var("k"), Var("n")
        layout = Layout((k, n), indices(affine(k), affine(n)), shape(stmt.shape))
        return replace(stmt, layout=layout)

    return transform(packed(), edit)


def reason(evidence: Evidence) -> str:
    found = evidence.counterexample
    assert found is not None
    assert found.claim == "layouts"
    assert found.refuted
    return found.reason


def test_panels() -> None:
    program = with_layout(lambda k, n: (n // 4, k, n % 4), lambda s: (affine(4), s[0], affine(4)))
    evidence = prove(program)
    assert evidence.ok, str(evidence)


def test_padding() -> None:
    program = with_layout(lambda k, n: (k, n), lambda s: (s[0], affine(17)))
    assert prove(program).ok


def test_two_elements_in_one_place() -> None:
    program = with_layout(lambda k, n: (k, n // 2), lambda s: (s[0], affine(8)))
    assert reason(prove(program)) == "the layout of B.local puts two elements in one place"


def test_outside_its_memory() -> None:
    program = with_layout(lambda k, n: (k, n), lambda s: (s[0], affine(15)))
    assert reason(prove(program)) == "the layout of B.local puts an element outside its memory"
