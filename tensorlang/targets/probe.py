"""What a processor's vectors can do, read off LLVM's features or off the code that LLVM makes.

Input:  ``probe_in_subprocess("haswell")``
Output: ``Facts(vector_bits=256, vector_registers=16, fused_multiply_add=True, ...)``

LLVM does not tell the features of a processor that it is asked for by name, but a small function
compiled for it does. For some unknown names LLVM ends the process, so that happens in another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tensorlang.targets.llvm import llvm_binding


@dataclass(frozen=True, slots=True)
class Facts:
    """Bits of a vector register, how many there are, and which instructions exist."""

    vector_bits: int
    vector_registers: int
    fused_multiply_add: bool
    half_conversion: bool
    native_rounding: bool


OTHER_THAN_X86 = Facts(128, 32, True, True, True)

_PROBE = """
define void @multiply(ptr %p, ptr %q) "prefer-vector-width"="512" {
  %a = load <16 x float>, ptr %p, align 4
  %b = load <16 x float>, ptr %q, align 4
  %m = fmul contract <16 x float> %a, %b
  %s = fadd contract <16 x float> %m, %a
  store <16 x float> %s, ptr %q, align 4
  ret void
}
define <4 x float> @round(<4 x float> %x) {
  %r = call <4 x float> @llvm.floor.v4f32(<4 x float> %x)
  ret <4 x float> %r
}
define float @widen(ptr %p) {
  %h = load half, ptr %p, align 2
  %f = fpext half %h to float
  ret float %f
}
"""


def probe(name: str) -> Facts:
    """Return facts of the processor ``name``; LLVM may abort the process if it does not know it."""
    llvm = llvm_binding()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=name, opt=3, reloc="pic", codemodel="small")
    assembly = machine.emit_assembly(llvm.parse_assembly(_PROBE))
    if not is_x86(llvm.get_process_triple()):
        return OTHER_THAN_X86
    bits = 512 if "%zmm" in assembly else 256 if "%ymm" in assembly else 128
    return Facts(
        vector_bits=bits,
        vector_registers=32 if bits == 512 else 16,
        fused_multiply_add="vfmadd" in assembly,
        half_conversion="vcvtph2ps" in assembly,
        native_rounding="roundps" in assembly or "vrndscaleps" in assembly,
    )


def host_facts(features: Mapping[str, bool], triple: str) -> Facts:
    """Return the facts that follow from the features of a processor, as LLVM names them."""
    if not is_x86(triple):
        return OTHER_THAN_X86
    wide = bool(features.get("avx512f"))
    return Facts(
        vector_bits=512 if wide else 256 if features.get("avx") else 128,
        vector_registers=32 if wide else 16,
        fused_multiply_add=bool(features.get("fma")),
        half_conversion=bool(features.get("f16c")),
        native_rounding=bool(features.get("sse4.1")),
    )


def is_x86(triple: str) -> bool:
    """Whether a triple names the x86-64 instruction set."""
    return triple.startswith(("x86_64", "amd64"))


def probe_in_subprocess(name: str) -> Facts | None:
    """Return the facts of ``name``, or None if LLVM complains of the name or dies of it."""
    program = (
        "import json, sys; from dataclasses import asdict;"
        "from tensorlang.targets.probe import probe;"
        "print(json.dumps(asdict(probe(sys.argv[1]))))"
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
    return Facts(**json.loads(answer.stdout))
