"""What is known of a processor: its vectors, registers, caches and cores.

Input:  ``"cpu"`` or ``"cpu -mcpu=haswell"``
Output: ``CpuTarget(cpu="haswell", vector_bits=256, vector_registers=16, ...)``

Schedule rules read the facts; the backend hands ``cpu`` and ``features`` to LLVM. Nothing is looked
up in a table of processors: the host's facts come from LLVM and the operating system, those of a
named processor from the code that LLVM makes for it.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tensorlang.errors import CompileError
from tensorlang.targets.llvm import llvm_binding

_FALLBACK_CACHES = (32 * 1024, 512 * 1024, 8 * 1024 * 1024)


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
    masked_memory: bool
    cores: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    line_bytes: int = 64

    @property
    def is_x86(self) -> bool:
        """Whether the instruction set is x86-64."""
        return self.triple.startswith(("x86_64", "amd64"))

    def lanes(self, bits: int) -> int:
        """Return how many elements of ``bits`` bits one vector register holds."""
        return max(1, self.vector_bits // bits)

    def __str__(self) -> str:
        return self.text


def parse_cpu_target(text: str) -> CpuTarget:
    """Return the target that ``"cpu"`` or ``"cpu -mcpu=NAME"`` means on this machine.

    Raises CompileError for other options, and for a name that LLVM does not know.
    """
    kind, *options = shlex.split(text) or [""]
    name = "native"
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
    triple = llvm.get_process_triple()
    name = llvm.get_host_cpu_name()
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # an operating system for which LLVM cannot tell
        return _named_target(name)
    if triple.startswith(("x86_64", "amd64")):
        bits = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
        registers = 32 if features.get("avx512f") else 16
        fused = bool(features.get("fma"))
        half = bool(features.get("f16c"))
        masked = bool(features.get("avx"))
    else:
        bits, registers, fused, half, masked = 128, 32, True, True, False
    return _with_machine(
        "cpu", name, features.flatten(), triple, bits, registers, fused, half, masked
    )


@cache
def _named_target(name: str) -> CpuTarget:
    llvm = llvm_binding()
    triple = llvm.get_process_triple()
    facts = _probe_in_subprocess(name)
    if facts is None:
        raise CompileError(
            f'target "cpu -mcpu={name}": LLVM does not know this processor for {triple}.\n'
            'Leave -mcpu out to compile for this machine, or use a name such as "x86-64-v3".'
        )
    return _with_machine(
        f"cpu -mcpu={name}",
        name,
        "",
        triple,
        int(facts["bits"]),
        int(facts["registers"]),
        bool(facts["fused"]),
        bool(facts["half"]),
        bool(facts["masked"]),
    )


def _with_machine(
    text: str,
    cpu: str,
    features: str,
    triple: str,
    bits: int,
    registers: int,
    fused: bool,
    half: bool,
    masked: bool,
) -> CpuTarget:
    l1, l2, l3 = cache_sizes()
    return CpuTarget(
        text=text,
        cpu=cpu,
        features=features,
        triple=triple,
        vector_bits=bits,
        vector_registers=registers,
        fused_multiply_add=fused,
        half_conversion=half,
        masked_memory=masked,
        cores=available_cores(),
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
    )


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def cache_sizes() -> tuple[int, int, int]:
    """Return the bytes of the data caches that one core sees; usual sizes where unknown."""
    found = _linux_cache_sizes() if sys.platform == "linux" else {}
    if sys.platform == "darwin":
        found = _darwin_cache_sizes()
    l1, l2, l3 = (
        found.get(level + 1) or fallback for level, fallback in enumerate(_FALLBACK_CACHES)
    )
    return l1, l2, l3


def _linux_cache_sizes() -> dict[int, int]:
    found: dict[int, int] = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            size = (index / "size").read_text().strip()
            if kind != "Instruction":
                unit = {"K": 1024, "M": 1024**2}.get(size[-1:], 1)
                found[level] = int(size.rstrip("KM")) * unit
        except (OSError, ValueError):
            continue
    return found


def _darwin_cache_sizes() -> dict[int, int]:
    found: dict[int, int] = {}
    for level, name in ((1, "hw.l1dcachesize"), (2, "hw.l2cachesize"), (3, "hw.l3cachesize")):
        try:
            answer = subprocess.run(
                ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=True
            )
            found[level] = int(answer.stdout)
        except (OSError, ValueError, subprocess.CalledProcessError):
            continue
    return found


# --- a named processor: read its facts off the code that LLVM makes for it -----------------------

_PROBE = """
define void @multiply(ptr %p, ptr %q) "prefer-vector-width"="512" {
  %a = load <16 x float>, ptr %p, align 4
  %b = load <16 x float>, ptr %q, align 4
  %m = fmul contract <16 x float> %a, %b
  %s = fadd contract <16 x float> %m, %a
  store <16 x float> %s, ptr %q, align 4
  ret void
}
define float @widen(ptr %p) {
  %h = load half, ptr %p, align 2
  %f = fpext half %h to float
  ret float %f
}
"""


def probe(name: str) -> dict[str, int | bool]:
    """Return facts of the processor ``name``; LLVM may abort the process if it does not know it."""
    llvm = llvm_binding()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=name, opt=3, reloc="pic", codemodel="small")
    assembly = machine.emit_assembly(llvm.parse_assembly(_PROBE))
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return {"bits": 128, "registers": 32, "fused": True, "half": True, "masked": False}
    bits = 512 if "%zmm" in assembly else 256 if "%ymm" in assembly else 128
    return {
        "bits": bits,
        "registers": 32 if bits == 512 else 16,
        "fused": "vfmadd" in assembly or "vfma" in assembly,
        "half": "vcvtph2ps" in assembly,
        "masked": bits > 128,
    }


def _probe_in_subprocess(name: str) -> dict[str, int | bool] | None:
    """Return the facts of ``name``, or None if LLVM complains of the name or dies of it."""
    program = (
        "import json, sys; from tensorlang.targets.cpu import probe;"
        "print(json.dumps(probe(sys.argv[1])))"
    )
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    answer = subprocess.run(
        [sys.executable, "-c", program, name],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    if answer.returncode or "not a recognized" in answer.stderr:
        return None
    return json.loads(answer.stdout)
