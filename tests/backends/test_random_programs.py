"""Random programs: machine code against the interpreter, bit for bit.

The baseline target has no fused multiply-add, so that float arithmetic too has one right answer;
on the host the arithmetic is restricted to what contraction cannot change.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tensorlang.interpreter.run import run_lowered
from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.ir.printer import format_lowered
from tensorlang.ir.program import Seq
from tests.backends.harness import BASELINE, Kernel
from tests.backends.programs import buffer, lanes_over, program, store
from tests.backends.strategies import EXACT, USED, Inputs, arrays, expressions

UNFUSED = tuple(name for name in EXACT if name not in ("mul", "fma"))
SETTINGS = settings(
    max_examples=int(os.environ.get("TENSORLANG_FUZZ", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@st.composite
def elementwise(draw: Any, functions: tuple[str, ...]) -> tuple[LoweredProgram, Inputs]:
    """One or two outputs of N elements, over vectors of some number of lanes."""
    inputs = Inputs(Var("N"), Var("K"))
    lanes = draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    count = draw(st.integers(1, 2))
    outputs = [
        buffer(f"Y{number}", draw(st.sampled_from(USED)), inputs.size) for number in range(count)
    ]

    def body(index: Any) -> Any:
        stmts = [
            store(y, index, draw(expressions(inputs, index, y.dtype, functions, 3)))
            for y in outputs
        ]
        return Seq(tuple(stmts))

    kind = draw(st.sampled_from(["serial", "parallel"]))
    loops = lanes_over(inputs.size, lanes, body, kind)
    sources = [*inputs.wide.values(), *inputs.exact.values()]
    made = program(
        loops,
        (inputs.size, inputs.stride),
        sources,
        outputs,
        scalars=tuple(inputs.scalars.values()),
    )
    return made, inputs


def check(made: LoweredProgram, target: str, size: int, stride: int, seed: int) -> None:
    sizes = {made.sizes[0]: size, made.sizes[1]: stride}
    arguments = [
        arrays(source.dtype, evaluate(source.size, sizes), seed + number)
        for number, source in enumerate(made.inputs)
    ]
    scalars = [arrays(scalar.dtype, 1, seed + 50)[0] for scalar in made.scalars]
    outcome = Kernel(made, target)(arguments, (size, stride), scalars)
    assert outcome.code == 0
    expected = run_lowered(made, arguments, scalars, (size, stride))
    for got, want in zip(outcome.outputs, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@SETTINGS
@given(
    made=elementwise(EXACT),
    size=st.sampled_from([0, 1, 2, 3, 7, 13, 16, 33]),
    stride=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
def test_baseline_is_exact(
    made: tuple[LoweredProgram, Inputs], size: int, stride: int, seed: int
) -> None:
    note(format_lowered(made[0]))
    check(made[0], BASELINE, size, stride, seed)


@SETTINGS
@given(
    made=elementwise(UNFUSED),
    size=st.sampled_from([0, 1, 5, 13, 16, 33]),
    stride=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
def test_host_is_exact_without_contraction(
    made: tuple[LoweredProgram, Inputs], size: int, stride: int, seed: int
) -> None:
    check(made[0], "cpu", size, stride, seed)
