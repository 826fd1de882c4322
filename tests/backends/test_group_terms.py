"""Long sums of products: put together by what moves in them, with the same value."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.backends.llvm.group_terms import group_terms
from tensorlang.backends.llvm.module import emit_module
from tensorlang.ir.affine import Affine, Atom, Var, affine, evaluate, variables_of
from tensorlang.lower.pipeline import lower
from tensorlang.targets.cpu import parse_cpu_target

SIZES = [Var(name) for name in ("D", "H", "W")]
LOOPS = [Var(name) for name in ("i", "j", "k")]


def is_fixed(factor: Atom) -> bool:
    return variables_of(affine(factor)).isdisjoint(LOOPS)


@st.composite
def sums(draw: st.DrawFn) -> Affine:
    """A sum of loops, or parts of them, times products of sizes more or less."""
    total = affine(draw(st.integers(-9, 9)))
    for _ in range(draw(st.integers(1, 4))):
        term = affine(draw(st.sampled_from(LOOPS)))
        if draw(st.booleans()):
            term = term // draw(st.sampled_from([3, affine(SIZES[0])]))
        for _ in range(draw(st.integers(0, 3))):
            size = affine(draw(st.sampled_from(SIZES)))
            term = term * (size // draw(st.integers(1, 3)) + draw(st.integers(-2, 2)))
        total = total + term * draw(st.integers(-3, 3)) + affine(draw(st.sampled_from(SIZES)))
    return total


@given(sums(), st.lists(st.integers(1, 9), min_size=6, max_size=6))
def test_the_value_stays_and_weights_are_fixed(index: Affine, numbers: list[int]) -> None:
    groups = group_terms(index, is_fixed)
    values = dict(zip((*SIZES, *LOOPS), numbers, strict=True))
    total = index.constant
    for moving, weight in groups:
        assert not any(map(is_fixed, moving))
        assert variables_of(weight).isdisjoint(LOOPS)
        product = affine(1)
        for factor in moving:
            product = product * affine(factor)
        total += evaluate(product, values) * evaluate(weight, values)
    assert total == evaluate(index, values)
    assert len({moving for moving, _ in groups}) == len(groups)


def test_volumes_of_any_size_are_few_instructions() -> None:
    """A place in five dimensions is a few products, and what sizes say is computed once."""
    x, w = np.ones((1, 2, 3, 4, 5), np.float32), np.ones((2, 2, 1, 2, 3), np.float32)
    program = tl.schedule(tl.nn.conv3d.definition(x, w, padding=1)).default().program
    text = emit_module(lower(program), parse_cpu_target("cpu -mcpu=haswell"), fast_math=False)
    assert len(text.splitlines()) < 12_000  # 60,000 with every place multiplied out
    entries = [function.split("start:")[0] for function in text.split("define ")[1:]]
    assert max(entry.count("mul nsw") for entry in entries) > 50
