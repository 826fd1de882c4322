"""Running programs in the interpreter after every pass, against NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensorlang.dtypes import to_numpy
from tensorlang.interpreter.run import run_lowered, run_program
from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.definition import Tensor
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.ir.program import Program
from tensorlang.ir.verify import verify_lowered
from tensorlang.lower.check import check_same_instances
from tensorlang.lower.pipeline import lowering_steps
from tensorlang.schedule.place_inits import place_inits


def shape_of(tensor: Tensor, sizes: Mapping[Var, int]) -> tuple[int, ...]:
    return tuple(evaluate(form, sizes) for form in tensor.shape)


def random_inputs(program: Program, sizes: Mapping[Var, int], seed: int = 0):
    random = np.random.default_rng(seed)
    inputs = {}
    for tensor in program.definition.inputs:
        shape = shape_of(tensor, sizes)
        # Small whole numbers: sums are exact, so reordering shows nothing and results are equal.
        inputs[tensor] = random.integers(-4, 5, shape).astype(to_numpy(tensor.dtype))
    return inputs


def sizes_of(program: Program, *values: int) -> dict[Var, int]:
    return dict(zip(program.definition.sizes, values, strict=True))


def run_state(state: Program | LoweredProgram, program: Program, inputs, sizes):
    definition = program.definition
    if isinstance(state, Program):
        results = run_program(state, inputs, sizes)
        return [results[tensor] for tensor in definition.outputs]
    arrays = [inputs[tensor] for tensor in definition.inputs]
    shapes = [shape_of(tensor, sizes) for tensor in definition.outputs]
    values = [sizes[size] for size in definition.sizes]
    return run_lowered(state, arrays, (), values, shapes)


def check_every_pass(program: Program, *sizes: int, steps=None, inputs=None) -> LoweredProgram:
    """Run the program after each pass; all results must equal those of the program itself."""
    given = sizes_of(program, *sizes)
    inputs = random_inputs(program, given) if inputs is None else inputs
    expected = run_state(place_inits(program), program, inputs, given)
    state: Program | LoweredProgram = program
    before: Program | LoweredProgram = place_inits(program)
    for name, state in steps or lowering_steps(program):
        try:
            if isinstance(before, Program) and isinstance(state, Program):
                check_same_instances(before, state, given)
            before = state
            found = run_state(state, program, inputs, given)
        except Exception as error:
            raise AssertionError(f"after {name} with sizes {sizes}: {error}") from error
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"after {name} with sizes {sizes}")
    assert isinstance(state, LoweredProgram)
    verify_lowered(state)
    return state
