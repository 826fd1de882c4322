"""What is known of a processor: its vectors, registers, caches and cores.

Input:  ``"cpu"`` or ``"cpu -mcpu=haswell"``
Output: ``CpuTarget(cpu="haswell", vector_bits=256, vector_registers=16, ...)``

Schedule rules read the facts; the backend hands ``cpu`` and ``features`` to LLVM. Nothing is looked
up in a table of processors: the host's facts come from LLVM and the operating system, those of a
named processor from the code that LLVM makes for it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache

from tensorlang.config import settings
from tensorlang.errors import CompileError
from tensorlang.targets.llvm import llvm_binding
from tensorlang.targets.machine import available_cores, cache_sizes
from tensorlang.targets.probe import Facts, host_facts, is_x86, probe_in_subprocess


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """A processor and the machine around it; sizes in bytes, ``vector_bits`` of one register."""

    text: str
    cpu: str
    features: str
    triple: str
    vector_bits: int
    vector_registers: int
    fused_multiply_add: bool
    half_conversion: bool
    native_rounding: bool
    cores: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    line_bytes: int = 64

    @property
    def is_x86(self) -> bool:
        """Whether the instruction set is x86-64."""
        return is_x86(self.triple)

    @property
    def scales_by_powers(self) -> bool:
        """Whether an instruction multiplies vectors by powers of two: AVX-512 has one."""
        return self.is_x86 and self.vector_bits >= 512

    def lanes(self, bits: int) -> int:
        """Return how many elements of ``bits`` bits one vector register holds."""
        return max(1, self.vector_bits // bits)

    def __str__(self) -> str:
        return self.text


def parse_cpu_target(text: str) -> CpuTarget:
    """Return the target that ``"cpu"`` or ``"cpu -mcpu=NAME"`` means on this machine.

    Without a name it is the processor of the settings (``TENSORLANG_CPU``), else this machine's.
    Raises CompileError for other options, and for a name that LLVM does not know.
    """
    kind, *options = shlex.split(text) or [""]
    name = settings().cpu
    for option in options:
        key, _, value = option.partition("=")
        if key != "-mcpu" or not value:
            raise CompileError(
                f'target "{text}": the option {option} is not known.\n'
                'A CPU target is "cpu" or "cpu -mcpu=NAME".'
            )
        name = value
    if kind != "cpu":
        raise CompileError(f'target "{text}" is not a CPU target, which begins with "cpu".')
    return host_target() if name in ("native", "host") else _named_target(name)


@cache
def host_target() -> CpuTarget:
    """Return the facts of the processor that runs this process."""
    llvm = llvm_binding()
    name = llvm.get_host_cpu_name()
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # an operating system for which LLVM cannot tell
        return _named_target(name)
    facts = host_facts(features, llvm.get_process_triple())
    return _with_machine("cpu", name, features.flatten(), facts)


@cache
def _named_target(name: str) -> CpuTarget:
    facts = probe_in_subprocess(name)
    if facts is None:
        triple = llvm_binding().get_process_triple()
        raise CompileError(
            f'target "cpu -mcpu={name}": LLVM does not know this processor for {triple}.\n'
            'Leave -mcpu out to compile for this machine, or use a name such as "x86-64-v3".'
        )
    return _with_machine(f"cpu -mcpu={name}", name, "", facts)


def _with_machine(text: str, cpu: str, features: str, facts: Facts) -> CpuTarget:
    l1, l2, l3 = cache_sizes()
    return CpuTarget(
        text=text,
        cpu=cpu,
        features=features,
        triple=llvm_binding().get_process_triple(),
        vector_bits=facts.vector_bits,
        vector_registers=facts.vector_registers,
        fused_multiply_add=facts.fused_multiply_add,
        half_conversion=facts.half_conversion,
        native_rounding=facts.native_rounding,
        cores=available_cores(),
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
    )
