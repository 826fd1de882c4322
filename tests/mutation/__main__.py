"""Make every mistake and write the table of ``docs/mutations.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.mutation.battery import NETS, notices
from tests.mutation.cases import CASES
from tests.mutation.mutations import MUTATIONS

PAGE = Path(__file__).parents[2] / "docs" / "mutations.md"
HEAD = "| mistake | where | noticed by |"


def main() -> int:
    healthy = notices(None, tuple(CASES))
    print("without a mistake:", healthy or "nothing to notice")
    rows: list[str] = []
    missed: list[str] = []
    for mutation in MUTATIONS:
        found = notices(mutation, mutation.cases)
        nets = ", ".join(net for net in NETS if net in found)
        print(f"{mutation.mistake}: {found or 'NOT NOTICED'}", flush=True)
        if not nets:
            missed.append(mutation.mistake)
        where = mutation.function.removeprefix("tensorlang.").replace(":", ": ")
        rows.append(f"| {mutation.mistake} | `{where}` | {nets or '**nothing**'} |")
    page = PAGE.read_text()
    start = page.index(HEAD)
    PAGE.write_text(page[:start] + "\n".join([HEAD, "|---|---|---|", *rows]) + "\n")
    print(f"{len(MUTATIONS)} mistakes, {len(missed)} not noticed: {missed}")
    return 1 if missed or healthy else 0


if __name__ == "__main__":
    sys.exit(main())
