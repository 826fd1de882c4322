"""The programs that one compiled function may run, and which of them a call wants.

Input:  ``matmul`` of sizes M, N, K with the default schedule; a call with M = 31
Output: the choice ``M <= 32, tiles of 8 rows and 2 vectors``, and the program of that version

A schedule written by hand has one program for all sizes. The rules make a version when a call first
wants it, and only where the call is long enough for its choice to matter: short calls of ever
changing sizes share the general one.
"""

from __future__ import annotations

import threading
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol

from tensorlang.driver.keys import Origin
from tensorlang.ir.printer import format_program
from tensorlang.ir.program import Program
from tensorlang.ir.specialize import fix_sizes
from tensorlang.runtime.sizes import Binding
from tensorlang.schedule.rules import LEAST_SECONDS, chooser
from tensorlang.schedule.schedule import Schedule

if TYPE_CHECKING:
    from tensorlang.schedule.rules.choice import Choice

_MOST = 64
"""Versions that a function has at most, besides the general one, which serves what is left."""

_ALIKE = 6
"""Versions that may be made where one with fewer sizes fixed would do for all of them."""


class Versions(Protocol):
    """What can be compiled; a choice is any hashable value, None the version for all sizes."""

    def choose(self, binding: Binding) -> Any:
        """Return the choice of a call."""
        ...

    def program(self, choice: Any) -> Program:
        """Return the program of a version."""
        ...

    def origin(self, choice: Any) -> Origin:
        """Return what determines that program."""
        ...

    def text(self) -> str:
        """Return the programs as text: the general one, then the others that were made so far."""
        ...


class OnlyVersion:
    """The program of a schedule that was written by hand."""

    def __init__(self, origin: Origin, program: Program) -> None:
        self._origin = origin
        self._program = program

    def choose(self, binding: Binding) -> None:
        """Return None, whatever the call."""

    def program(self, choice: Any) -> Program:
        """Return the program."""
        return self._program

    def origin(self, choice: Any) -> Origin:
        """Return what determines the program."""
        return self._origin

    def text(self) -> str:
        """Return the program as text."""
        return format_program(self._program)


class DefaultVersions:
    """The programs of the rules, each made when it is first asked for."""

    def __init__(self, schedule: Schedule, target: str) -> None:
        self._schedule = schedule
        self._target = target
        self._names = [size.name for size in schedule.definition.sizes]
        self._chooser = cache(lambda: chooser(schedule.definition, target))
        self._chosen: set[Choice] = set()
        self._programs: dict[Any, Program] = {}
        self._lock = threading.Lock()

    def choose(self, binding: Binding) -> Any:
        """Return the choice of a call; None for short ones."""
        if not self._names or binding.work.serial_seconds < LEAST_SECONDS:
            return None
        chooser = self._chooser()
        if binding.work.serial_seconds < chooser.least_seconds:
            return None
        choices = chooser.choose(dict(zip(self._names, binding.sizes, strict=True)))
        with self._lock:
            for choice, broader in zip_longest(choices, choices[1:]):
                if choice in self._chosen:
                    return choice
                if len(self._chosen) < _MOST and self._within(broader) < _ALIKE:
                    self._chosen.add(choice)
                    return choice
        return None

    def _within(self, broader: Choice | None) -> int:
        """Return how many versions were chosen for whose calls ``broader`` would do."""
        if broader is None:
            return 0
        return sum(set(broader.fixed) < set(choice.fixed) for choice in self._chosen)

    def program(self, choice: Any) -> Program:
        """Return the program of a version, made by the rules."""
        with self._lock:
            if choice not in self._programs:
                version = self._untouched(choice).default_version(choice, self._target)
                self._programs[choice] = version.program
            return self._programs[choice]

    def origin(self, choice: Any) -> Origin:
        """Return what determines that program: the definition, and the choice."""
        text = "" if choice is None else repr(choice)
        return Origin(self._untouched(choice).definition, None, text)

    def text(self) -> str:
        """Return the programs as text: the general one, then the others that were made so far."""
        general = self.program(None)
        made = [program for choice, program in self._programs.items() if choice is not None]
        return "\n".join(map(format_program, (general, *made)))

    def _untouched(self, choice: Any) -> Schedule:
        fixed = {} if choice is None else dict(choice.fixed)
        if not fixed:
            return self._schedule.fork()
        return Schedule(fix_sizes(self._schedule.definition, fixed), fixed)
