"""What a compiled function tells about itself.

Input:  ``print(f.report)``      Output: target, proof, threads, and a line per compiled version
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class VersionReport:
    """A compiled version: the layout of each array, and the seconds that compiling took.

    ``choice`` tells what it was chosen for, if that is not every size.
    """

    layouts: tuple[str, ...]
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()
    choice: str = ""

    def __str__(self) -> str:
        choice = f" for {self.choice}" if self.choice else ""
        phases = ", ".join(f"{name} {1e3 * s:.1f}" for name, s in self.phases.items())
        times = f"{1e3 * self.seconds:.1f} ms" + (f" ({phases})" if phases else "")
        notes = "".join(f"\n      {note}" for note in self.notes)
        return f"({', '.join(self.layouts)}){choice}: {times}{notes}"


@dataclass(frozen=True, slots=True)
class Report:
    """Printable facts about a compiled function."""

    name: str
    target: str
    proof: str
    threads: str
    versions: tuple[VersionReport, ...]

    def __str__(self) -> str:
        proof = (self.proof or "none").splitlines()
        lines = [
            f"{self.name} for {self.target}",
            *(["  proof:", *(f"    {line}" for line in proof)] if len(proof) > 1 else []),
            *([f"  proof:    {proof[0]}"] if len(proof) == 1 else []),
            f"  threads:  {self.threads}",
            "  versions:" + ("" if self.versions else " none yet"),
            *(f"    {version}" for version in self.versions),
        ]
        return "\n".join(lines)
