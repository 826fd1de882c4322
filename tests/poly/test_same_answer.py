"""isl's dataflow gives the same answer whatever was asked of its relations before."""

import pytest

import tensorlang as tl
from tensorlang.poly.access import Accesses
from tensorlang.poly.dependence import find_dependences
from tensorlang.poly.domain import Nest
from tensorlang.poly.isl_text import limited
from tensorlang.schedule.place_inits import place_inits
from tests.schedule.operators import conv2d


def fused_convolution():
    """Return a schedule whose output is written at quotients and remainders of a fused loop."""
    s = tl.schedule(conv2d, F=8, S=17, stride=2, pad=0)
    s.compute_at("p", "conv2d/c")
    s.decompose_reduction("conv2d", "conv2d/c")
    s.tile(["conv2d/o", "conv2d/y", "conv2d/z"], [5, 5, 16])
    names = ("o.o", "z.o", "y.o", "o.i", "z.i", "y.i")
    s.reorder(*[f"conv2d/{name}" for name in names])
    s.fuse("conv2d/o.i", "conv2d/z.i")
    return s


@pytest.mark.parametrize("question", ["compute_divs", "coalesce", "is_empty", "lexmin"])
def test_questions_before_the_dataflow(question):
    program = place_inits(fused_convolution().program)
    with limited(10**8):
        accesses = Accesses(Nest(program))
        for access in (*accesses.reads, *accesses.own, *accesses.copies, *accesses.writes):
            getattr(accesses.relation(access, sound=True), question)()
            getattr(accesses.nest.points(access.instance), question)()
        for _ in range(2):
            found = find_dependences(accesses)
            assert found.unwritten_reads.is_empty()
            assert found.unwritten_own.is_empty()


def test_a_proof_after_a_proof():
    assert fused_convolution().verify().ok
    s = fused_convolution()
    s.undo()
    assert s.verify().ok
    s.fuse("conv2d/o.i", "conv2d/z.i")
    assert s.verify().ok
