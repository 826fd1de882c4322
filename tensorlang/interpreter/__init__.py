"""The reference executor: every level of the loop programs on NumPy arrays, fully checked."""

from tensorlang.interpreter.failures import DataIndexError, InterpreterError
from tensorlang.interpreter.run import run_lowered, run_program

__all__ = ["DataIndexError", "InterpreterError", "run_lowered", "run_program"]
