"""The interpreter sees races of threads, whatever the order in which it runs them."""

import re

import pytest

from tensorlang.interpreter import run_program
from tensorlang.interpreter.failures import InterpreterError
from tests import kernels

SMALL = {
    "add": lambda: kernels.vector_add(4),
    "softmax": lambda: kernels.row_softmax(4),
    "transpose": lambda: kernels.padded_transpose(3),
    "matmul": lambda: kernels.tiled_matmul((4, 6, 2), (2, 3), vector=1),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("sizes", [(0, 3, 2), (1, 1, 1), (5, 7, 0), (7, 11, 5), (9, 6, 4)])
def test_scheduled_and_lowered_kernels_compute_the_definition(
    name: str, sizes: tuple[int, int, int]
) -> None:
    kernels.check_interpreted(SMALL[name](), dict(zip("MNK", sizes, strict=True)))


@pytest.mark.parametrize(
    ("name", "number"),
    [*[("softmax", n) for n in range(4)], ("matmul", 0), ("matmul", 1), ("transpose", 0)],
)
def test_every_missing_barrier_is_noticed(name: str, number: int) -> None:
    program = kernels.without_barrier(kernels.placed(SMALL[name]()), number)
    arrays, values = kernels.arguments(program, {"M": 7, "N": 7, "K": 7})
    with pytest.raises(InterpreterError, match="of the block also touched since the last barrier"):
        run_program(program, arrays, values)
    run_program(program, arrays, values, detect_races=False)  # nest after nest, all is well


def test_the_report_of_a_race() -> None:
    program = kernels.without_barrier(kernels.placed(kernels.padded_transpose(3)), 0)
    arrays, values = kernels.arguments(program, {"M": 3, "N": 3})
    with pytest.raises(InterpreterError) as error:
        run_program(program, arrays, values)
    text = str(error.value)
    found = re.fullmatch(
        r"thread \((\d), (\d), 0\): transpose\[j=\2, i=\1\] reads A.shared\[\1, \2\], which thread "
        r"\(\2, \1, 0\) of the block also touched since the last barrier, and not all of them only "
        r"read it",
        text,
    )
    assert found is not None, text


def test_registers_of_another_thread_are_noticed() -> None:
    program = kernels.placed(kernels.tiled_matmul((4, 4, 2), (2, 2), vector=1, swap=True))
    arrays, values = kernels.arguments(program, {"M": 4, "N": 4, "K": 2})
    with pytest.raises(
        InterpreterError, match="lies in registers, which no thread sees of another"
    ):
        run_program(program, arrays, values)


def test_storage_that_a_nest_of_threads_makes() -> None:
    """Made inside a loop of threads, it is one thread's own; here others read it."""
    from tests.poly.test_threads import nested_copy

    program = kernels.placed(nested_copy())
    arrays, values = kernels.arguments(program, {})
    with pytest.raises(
        InterpreterError, match="lies in registers, which no thread sees of another"
    ):
        run_program(program, arrays, values)
