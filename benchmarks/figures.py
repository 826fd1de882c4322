"""One figure a function, each run in a process of its own, with JSON on standard output.

``python -m benchmarks.figures NAME`` prints ``{"row": milliseconds, ...}``.
"""

import json
import pkgutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module

import numpy as np

from benchmarks.interleaving import interleave

Milliseconds = dict[str, float]


def import_time() -> Milliseconds:
    """``import tensorlang`` on top of ``import numpy``: median of fresh processes."""
    code = (
        "import numpy, time; start = time.perf_counter(); import tensorlang;"
        "print(time.perf_counter() - start)"
    )
    runs = [subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(11)]
    return {"import tensorlang": 1e3 * statistics.median(map(float, runs))}


def proofs() -> Milliseconds:
    """Whole proofs for symbolic sizes, islpy imported: median of nine."""
    from benchmarks import schedules

    named = {
        "tiled, packed, parallel matmul": schedules.tiled_packed_parallel(),
        "five levels, K-blocked, both operands packed": schedules.five_levels(),
    }
    calls = {name: schedule.verify for name, schedule in named.items()}
    return interleave(calls, 2)


def import_everything() -> None:
    """Load all that compiling may load, so that what follows is compilation."""
    import islpy  # noqa: F401
    import llvmlite.binding as llvm

    import tensorlang as tl

    for module in pkgutil.walk_packages(tl.__path__, "tensorlang."):
        if "__main__" not in module.name:
            import_module(module.name)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _compile_once(make: Callable[[], object], *shapes: tuple[int, ...]) -> float:
    """Time one compilation in this process; all imports and LLVM's start are excluded.

    It includes the first call, on small f32 arrays, for which the machine code is made.
    """
    import tensorlang as tl

    import_everything()
    source = make()
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    start = time.perf_counter()
    tl.compile(source)(*arrays)
    return 1e3 * (time.perf_counter() - start)


def compile_elementwise() -> Milliseconds:
    """A cold compilation by rule."""
    from benchmarks import schedules

    time = _compile_once(lambda: schedules.polynomial, (64,))
    return {"elementwise operator, default schedule": time}


def compile_tiled() -> Milliseconds:
    """A cold compilation of a hand schedule, with its proof."""
    from benchmarks import schedules

    return {"tiled matmul, hand schedule": _compile_once(schedules.tiled, (8, 8), (8, 8))}


def compile_by_hand() -> Milliseconds:
    """A cold compilation of the five-level hand schedule, with its proof."""
    from benchmarks import schedules

    time = _compile_once(schedules.by_hand, (8, 8), (8, 8))
    return {"five levels, K-blocked, hand schedule": time}


def matmul() -> Milliseconds:
    """The 1024 x 1024 x 1024 product in f32: NumPy, the default schedule, the hand schedule."""
    import tensorlang as tl
    from benchmarks import schedules

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((1024, 1024), dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    default = tl.compile(schedules.matmul)
    by_hand = tl.compile(schedules.by_hand())
    expected = a @ b
    for compiled in (default, by_hand):
        np.testing.assert_allclose(compiled(a, b), expected, rtol=1e-3, atol=1e-3)
    programs = {
        "NumPy": lambda: np.matmul(a, b, out=out),
        "default schedule": lambda: default(a, b, out=out),
        "hand schedule": lambda: by_hand(a, b, out=out),
    }
    return interleave(programs, 5)


def demo() -> Milliseconds:
    """The demo's picture: NumPy, SciPy, and both schedules."""
    import tensorlang as tl
    from tensorlang.cli.peers import gaussian_weights, unsharp_with_numpy, unsharp_with_scipy
    from tensorlang.cli.photograph import load_photograph
    from tensorlang.cli.unsharp import schedule_by_hand, unsharp

    picture, weights = load_photograph(None).pixels, gaussian_weights()
    out = np.empty_like(picture)
    default, by_hand = tl.compile(unsharp), tl.compile(schedule_by_hand())
    programs = {
        "SciPy": lambda: unsharp_with_scipy(picture, 1.5),
        "NumPy": lambda: unsharp_with_numpy(picture, weights, 1.5),
        "default schedule": lambda: default(picture, weights, 1.5, out=out),
        "hand schedule": lambda: by_hand(picture, weights, 1.5, out=out),
    }
    return interleave(programs, 8)


FIGURES: dict[str, Callable[[], Milliseconds]] = {
    function.__name__: function
    for function in (
        import_time,
        proofs,
        compile_elementwise,
        compile_tiled,
        compile_by_hand,
        matmul,
        demo,
    )
}

if __name__ == "__main__":
    print(json.dumps(FIGURES[sys.argv[1]]()))
