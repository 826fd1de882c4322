"""The workloads of ``python -m benchmarks.peers``, one family a module.

A family is a module with ``WORKLOADS``, its first docstring line being its title in the report.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from benchmarks.workload import Workload

FAMILIES = (
    "products", "convolutions", "memory", "attention", "stencil", "calls", "compilation",
)  # fmt: skip


def family(name: str) -> ModuleType:
    """Return the module of a family."""
    return import_module(f"benchmarks.workloads.{name}")


def all_workloads() -> dict[str, Workload]:
    """Return the workloads by name, in the order of the report."""
    return {work.name: work for name in FAMILIES for work in family(name).WORKLOADS}


def choose(names: list[str]) -> list[str]:
    """Return the names of the workloads that are meant by names of families and workloads.

    Raises ValueError for a name that is neither.
    """
    known = all_workloads()
    chosen: list[str] = []
    for name in names or FAMILIES:
        if name in FAMILIES:
            chosen += [work.name for work in family(name).WORKLOADS]
        elif name in known:
            chosen.append(name)
        else:
            raise ValueError(
                f"there is no workload {name!r}; families: {', '.join(FAMILIES)}; "
                f"workloads: {', '.join(known)}"
            )
    return list(dict.fromkeys(chosen))
