"""The list of operators in the documentation, and the module, name each other's."""

import re
from pathlib import Path

from tensorlang import nn

PAGE = Path(__file__).parents[2] / "docs" / "nn.md"


def listed():
    """Return the names that the first column of the page's tables has."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    first = [row.split(" | ")[0] for row in rows]
    return [name for cell in first for name in re.findall(r"`([a-z]\w*)[`(]", cell)]


def test_the_page_lists_what_there_is():
    assert sorted(listed()) == sorted(nn.__all__)


def test_each_operator_has_a_counterpart_beside_it():
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            *_, counterpart, _ = line.split("|")
            assert re.search(r"(F|torch|x)[.\[]", counterpart), line


def test_every_operator_says_what_it_returns():
    for name in nn.__all__:
        operator = getattr(nn, name)
        text = getattr(operator, "summary", None) or operator.__doc__
        assert text.startswith(("Return", "Tell")), name
