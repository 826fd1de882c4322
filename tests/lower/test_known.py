"""What is known at a place: every answer holds for each run of the loops around it."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang.ir.affine import Var, affine, evaluate, minimum
from tensorlang.lower.known import Known

M, N = Var("M"), Var("N")


@st.composite
def loops(draw):
    """Nested loops whose ends depend on sizes and on the loops around them."""
    found = {}
    outer = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        size = draw(st.sampled_from([M, N]))
        divisor = draw(st.sampled_from([1, 2, 3]))
        end = (affine(size) + divisor - 1) // divisor + draw(st.integers(-1, 1))
        if outer and draw(st.booleans()):
            end = end - affine(draw(st.sampled_from(outer))) * draw(st.integers(1, 2))
        if draw(st.booleans()):
            end = minimum(end, affine(draw(st.integers(1, 4))))
        variable = Var(name)
        found[variable] = end
        outer.append(variable)
    return found


def instances(extents, sizes):
    def visit(variables, values):
        if not variables:
            yield values
            return
        for number in range(max(0, evaluate(extents[variables[0]], values))):
            yield from visit(variables[1:], {**values, variables[0]: number})

    yield from visit(list(extents), sizes)


@settings(deadline=None, max_examples=300)
@given(loops(), st.data())
def test_decisions_hold_wherever_the_loops_run(extents, data):
    known = Known({}, {})
    for variable, extent in extents.items():
        known = known._with_ranges([(variable, extent)])
    form = affine(data.draw(st.integers(-3, 3)))
    for variable in (M, N, *extents):
        form = form + affine(variable) * data.draw(st.integers(-3, 3))
    answer = known.decide(form)
    if answer is None:
        return
    for m, n in itertools.product(range(5), repeat=2):
        for values in instances(extents, {M: m, N: n}):
            assert (evaluate(form, values) >= 0) is answer, (str(form), values)


def test_a_loop_ends_with_the_one_around_it():
    outer, inner = Var("outer"), Var("inner")
    known = Known({}, {})._with_ranges([(outer, (affine(N) + 63) // 64)])
    known = known._with_ranges([(inner, minimum(affine(N) - affine(outer) * 64, affine(64)))])
    assert known.proves(affine(N) - affine(outer) * 64 - affine(inner) - 1)
    assert known.proves(affine(N) - 1)
    assert not known.proves(affine(N) - affine(outer) * 64 - affine(inner) - 2)
