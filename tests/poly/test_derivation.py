"""Records of derived stages: right ones are accepted, each kind of wrong one is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorlang.dtypes import f16, f32
from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Axis, Definition, Stage
from tensorlang.ir.derivation import Derivation, Factored, Inlined
from tensorlang.ir.expr import Cast, Const, Load, index_from_value
from tensorlang.ir.program import Program
from tensorlang.ir.walk import sequence
from tensorlang.poly.expression import inline, is_same
from tensorlang.poly.proof import Evidence, prove
from tensorlang.schedule.place_inits import place_inits
from tests.poly import definitions as ops
from tests.poly.definitions import at, mul, tensor
from tests.poly.scheduling import nest_of, whole_alloc


def inlined_norm(value_power: int = 2) -> tuple[Definition, Inlined]:
    definition = ops.row_sums_of_squares()
    squares, norm = definition.stages
    x = definition.inputs[0]
    i, k = (affine(axis.variable) for axis in norm.all_axes)
    value = at(x, i, k)
    for _ in range(value_power - 1):
        value = mul(value, at(x, i, k))
    new = replace(norm, values=(value,))
    return definition, Inlined(norm, new, squares)


def prove_with(definition: Definition, stages: list[Stage], *records: Derivation) -> Evidence:
    body = sequence(*[nest_of(stage) for stage in stages])
    for stage in stages:
        for made in stage.tensors:
            if made not in definition.outputs:
                body = whole_alloc(made, body)
    program = Program(definition, tuple(stages), body, derivations=records)
    return prove(place_inits(program))


def reason(evidence: Evidence) -> str:
    found = evidence.counterexample
    assert found is not None
    assert found.claim == "derivations"
    return found.reason


def test_inlined_stage_is_accepted() -> None:
    definition, record = inlined_norm()
    evidence = prove_with(definition, [record.replacement], record)
    assert evidence.ok, str(evidence)


def test_derived_stage_without_its_record_is_refused() -> None:
    definition, record = inlined_norm()
    evidence = prove_with(definition, [record.replacement])
    assert evidence.counterexample is not None
    assert "nothing says how it derives" in evidence.counterexample.reason


def test_inlining_another_expression_is_refused() -> None:
    definition, record = inlined_norm(value_power=3)
    assert reason(prove_with(definition, [record.replacement], record)) == (
        "inlining Stage(squares) into Stage(norm) gives another expression"
    )


def test_inlining_a_reduction_is_refused() -> None:
    definition = ops.softmax()
    top, e = definition.stages[:2]
    text = reason(prove_with(definition, [e], Inlined(e, e, top)))
    assert "is not a plain map" in text


def test_inlining_with_another_combiner_is_refused() -> None:
    definition, record = inlined_norm()
    other = replace(record.replacement, combiner=ops.max_())
    text = reason(prove_with(definition, [other], replace(record, replacement=other)))
    assert "combines otherwise" in text


def test_inlined_axes_may_be_renamed() -> None:
    definition, record = inlined_norm()
    row, over = Var("row"), Var("over")
    x = definition.inputs[0]
    old = record.original
    new = Stage(
        old.tensors,
        (Axis(row, old.axes[0].extent),),
        (mul(at(x, row, over), at(x, row, over)),),
        (Axis(over, old.reduction_axes[0].extent),),
        old.combiner,
    )
    evidence = prove_with(definition, [new], replace(record, replacement=new))
    assert evidence.ok, str(evidence)


def test_inlining_keeps_the_rounding() -> None:
    n = Var("N")
    x, half = tensor("x", n), tensor("h", n, dtype=f16)
    stage = ops.map_stage(half, lambda i: mul(at(x, i), at(x, i)))
    i = affine(stage.axes[0].variable)
    product = mul(at(x, i), at(x, i))
    assert is_same(inline(at(half, i), stage), Cast(product, f16))
    assert not is_same(inline(at(half, i), stage), product)


def test_inlining_reaches_into_indices() -> None:
    n = Var("N")
    x, table = tensor("x", n), tensor("table", n, dtype=ops.i64)
    source = tensor("source", n, dtype=ops.i64)
    stage = ops.map_stage(table, lambda i: at(source, i + 1))
    i = affine(Var("i"))
    gathered = at(x, index_from_value(at(table, i)) + 1)
    expected = at(x, index_from_value(at(source, i + 1)) + 1)
    assert is_same(inline(gathered, stage), expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Const(0.0, f32), Const(-0.0, f32)),
        (Const(1, ops.i64), Const(1, f32)),
        (Const(1, ops.i64), Const(True, ops.i64)),
    ],
)
def test_constants_are_compared_bit_for_bit(left: Const, right: Const) -> None:
    assert not is_same(left, right)
    assert is_same(left, left)
    assert is_same(Const(float("nan"), f32), Const(float("nan"), f32))


# --- rfactor ------------------------------------------------------------------------------------


def factored_sums(
    reduction: str = "4 * q + r", tail: bool = True, ordered: bool = False
) -> tuple[Definition, Factored]:
    definition = ops.ordered_sum() if ordered else _sums()
    stage = definition.stages[0]
    x, out = definition.inputs[0], definition.outputs[0]
    extent = stage.reduction_axes[0].extent
    i, r, q = Var("i"), Var("r"), Var("q")
    forms: dict[str, Affine] = {
        "4 * q + r": affine(q) * 4 + r,
        "q": affine(q),
        "4 * q": affine(q) * 4,
        "reversed": extent - 1 - (affine(q) * 4 + r),
    }
    k = forms[reduction]
    parts = tensor("C.rf", *out.shape, 4)
    partial = Stage(
        (parts,),
        (Axis(i, stage.axes[0].extent), Axis(r, affine(4))),
        (at(x, i, k),),
        (Axis(q, (extent + 3) // 4),),
        stage.combiner,
        (extent - 1 - affine(q) * 4 - r,) if tail else (),
    )
    i2, r2 = Var("i"), Var("r")
    final = Stage(
        (out,),
        (Axis(i2, stage.axes[0].extent),),
        (at(parts, i2, r2),),
        (Axis(r2, affine(4)),),
        stage.combiner,
    )
    return definition, Factored(stage, partial, final, (k,))


def _sums() -> Definition:
    m, n = Var("M"), Var("N")
    x = tensor("X", m, n)
    stage = ops.reduce_stage(tensor("C", m), {"k": n}, lambda i, k: at(x, i, k))
    return ops.define("sums", (m, n), (x,), (stage,))


@pytest.mark.parametrize("reduction", ["4 * q + r", "reversed"])
def test_factored_reduction_is_accepted(reduction: str) -> None:
    definition, record = factored_sums(reduction)
    evidence = prove_with(definition, [record.partial, record.final], record)
    assert evidence.ok, str(evidence)


def test_factored_reduction_counting_twice_is_refused() -> None:
    definition, record = factored_sums("4 * q")
    text = reason(prove_with(definition, [record.partial, record.final], record))
    assert text.endswith("count a point of Stage(C) twice")


def test_factored_reduction_without_its_tail_is_refused() -> None:
    definition, record = factored_sums(tail=False)
    text = reason(prove_with(definition, [record.partial, record.final], record))
    assert text.endswith("do not cover the points of Stage(C)")


def test_factored_reduction_leaving_a_part_out_is_refused() -> None:
    definition, record = factored_sums()
    final = replace(record.final, predicate=(affine(record.final.reduction_axes[0].variable) - 1,))
    text = reason(prove_with(definition, [record.partial, final], replace(record, final=final)))
    assert text.endswith("leaves parts out")


def test_factored_reduction_of_another_value_is_refused() -> None:
    definition, record = factored_sums()
    value = record.partial.values[0]
    partial = replace(record.partial, values=(mul(value, value),))
    text = reason(prove_with(definition, [partial, record.final], replace(record, partial=partial)))
    assert "computes another expression" in text


def test_final_combination_reading_elsewhere_is_refused() -> None:
    definition, record = factored_sums()
    final = record.final
    load = final.values[0]
    assert isinstance(load, Load)
    final = replace(final, values=(Load(load.tensor, (load.indices[0], affine(0))),))
    text = reason(prove_with(definition, [record.partial, final], replace(record, final=final)))
    assert text.endswith("reads something else")


def test_factoring_an_ordered_reduction_is_refused() -> None:
    definition, record = factored_sums(ordered=True)
    text = reason(prove_with(definition, [record.partial, record.final], record))
    assert "runs in order" in text


def test_record_of_a_stranger_is_refused() -> None:
    definition, _ = factored_sums()
    other, record = factored_sums()
    text = reason(prove_with(definition, list(definition.stages), record))
    assert text == "Stage(C) is not a stage of the definition, nor derived from one"
    assert other is not definition
