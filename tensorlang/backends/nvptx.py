"""The NVIDIA backend: a lowered program to PTX.

Input:  ``compile_lowered(program, parse_target("cuda:sm_90"))``
Output: a ``PtxArtefact`` whose ``ptx`` is one kernel

The program becomes a kernel (``lower/kernel``), the kernel LLVM IR, and LLVM makes PTX of it. Two
checks keep mistakes from becoming a dead process or a kernel that cannot be linked: functions that
LLVM's NVPTX target does not have are refused before it sees them, and PTX that calls an external
function is refused afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from tensorlang.backends.base import DeviceUnavailable
from tensorlang.backends.llvm.kernel_module import emit_kernel
from tensorlang.backends.ptxas import Usage, assemble, find_ptxas
from tensorlang.errors import CompileError
from tensorlang.ir.affine import Affine
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.lower.kernel import Kernel, to_kernel
from tensorlang.lower.own_registers import own_registers
from tensorlang.lower.shared_memory import plan_shared_memory
from tensorlang.targets.gpu import GpuTarget, parse_gpu_target
from tensorlang.targets.llvm import llvm_binding

parse_target = parse_gpu_target

_TRIPLE = "nvptx64-nvidia-cuda"

# fmt: off
_INTRINSICS = frozenset((
    "abs", "ceil", "copysign", "ctlz", "ctpop", "cttz", "expect", "fabs", "floor", "fma", "fmuladd",
    "fshl", "fshr", "masked", "maximum", "maxnum", "memset", "minimum", "minnum", "nvvm", "rint",
    "round", "roundeven", "smax", "smin", "sqrt", "trunc", "umax", "umin", "vector",
))
# fmt: on
"""The families of LLVM's intrinsics that its NVPTX target turns into instructions.

For exp, log, pow, sin, cos and their like it ends the process; ours are polynomials.
"""


@dataclass(frozen=True)
class PtxArtefact:
    """PTX of one kernel, the LLVM IR that it was made from, and how it is launched.

    ``shared_bytes`` is what the launch must add to the shared memory that the kernel declares.
    """

    entry: str
    ptx: str
    llvm: str
    target: GpuTarget
    kernel: Kernel
    shared_bytes: Affine

    @property
    def object_code(self) -> bytes:
        """The PTX as bytes, which is what a driver loads."""
        return self.ptx.encode()

    @property
    def assembly(self) -> str:
        """The PTX."""
        return self.ptx

    @cached_property
    def usage(self) -> Usage:
        """What ptxas tells of the kernel."""
        return assemble(self.ptx, self.target.architecture)

    @property
    def texts(self) -> dict[str, str]:
        """What there is to read besides LLVM IR and assembly."""
        return {"ptx": self.ptx}

    def notes(self) -> tuple[str, ...]:
        """Return lines for the report: the launch, registers, spills, shared memory."""
        kernel = self.kernel
        grid = ", ".join(map(str, kernel.grid))
        block = ", ".join(map(str, kernel.block))
        lines = [f"kernel {self.entry}: grid ({grid}), block ({block})"]
        if self.shared_bytes != Affine(0):
            lines.append(f"dynamic shared memory: {self.shared_bytes} bytes a block")
        lines.append(str(self.usage) if find_ptxas() else "registers: not known without ptxas")
        return tuple(lines)


def compile_lowered(
    program: LoweredProgram, target: GpuTarget, *, opt_level: int = 3, fast_math: bool = False
) -> PtxArtefact:
    """Return the PTX of ``program``.

    Raises CompileError for what is no kernel, or needs memory or functions that a GPU lacks.
    """
    kernel = own_registers(to_kernel(program))
    memory = plan_shared_memory(kernel, target)
    made = emit_kernel(kernel, memory, target, fast_math)
    _check_functions(made.text, program.name)
    ptx = _emit_ptx(made.text, target, opt_level)
    external = re.findall(r"\.extern \.func.*?(\w+)\s*\n?\(", ptx)
    if external:
        raise CompileError(
            f"{program.name} would call {', '.join(external)}, which a GPU does not have"
        )
    added = memory.total if memory.is_dynamic else Affine(0)
    return PtxArtefact(made.name, ptx, made.text, target, kernel, added)


def load(artefact: PtxArtefact, symbols: Mapping[str, int]) -> Any:
    """Raise ``DeviceUnavailable``: PTX is made here, and launched elsewhere."""
    raise DeviceUnavailable(
        f"{artefact.kernel.name} is compiled for {artefact.target}, and this version of tensorlang "
        'does not launch kernels: it makes the PTX, f.source("ptx"), which the CUDA driver '
        f"(cuModuleLoadData) or CuPy (RawModule) can load and run as {artefact.entry}.\n"
        'To run here, compile the schedule for target="cpu" without bound loops.'
    )


def _check_functions(text: str, name: str) -> None:
    """Refuse functions that the NVPTX target does not have, before LLVM meets them."""
    for function in dict.fromkeys(re.findall(r"^declare .*?@([\w.]+)\(", text, re.MULTILINE)):
        family = function.split(".")[1] if function.startswith("llvm.") else ""
        if family not in _INTRINSICS:
            plain = family or function
            raise CompileError(
                f"{name} uses {plain}, which is not available on GPUs: it is a function of the C "
                "library or of CPUs.\nCompute it on the CPU, or write it with functions that are "
                "(exp, log, tanh, erf, sqrt, ...)."
            )
    if re.search(r"= frem ", text):
        raise CompileError(
            f"{name} takes the remainder of floats (// or %), which is not available on GPUs.\n"
            "x - tl.floor(x / y) * y is, with one rounding more."
        )


def _emit_ptx(text: str, target: GpuTarget, opt_level: int) -> str:
    binding = _nvptx_binding()
    machine = binding.Target.from_triple(_TRIPLE).create_target_machine(
        cpu=target.architecture, features=f"+ptx{target.ptx}", opt=opt_level
    )
    try:
        module: Any = binding.parse_assembly(text)
        module.triple = _TRIPLE
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the code that was made for it: {error}") from error
    options = binding.create_pipeline_tuning_options(speed_level=opt_level)
    # The schedule says what is unrolled; ptxas unrolls more where registers are left. LLVM, which
    # does not know how many there are, made a softmax spill.
    options.loop_unrolling = False
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


@cache
def _nvptx_binding() -> Any:
    """Return ``llvmlite.binding`` with the NVPTX target; shared addresses have 32 bits."""
    binding = llvm_binding()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.set_option("", "--nvptx-short-ptr")
    return binding
