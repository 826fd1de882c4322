"""Every Python snippet of the documentation runs, and prints what the page says.

``UPDATE_DOCS=1 pytest tests/test_docs.py`` writes the outputs into the pages instead.
"""

import os
from pathlib import Path

import pytest

from tests.documentation import find_blocks, run_page, update_page

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if any(b.kind == "python" for b in find_blocks(page.read_text()))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a snippet that writes a file leaves no trace
    name = str(page.relative_to(ROOT))
    if os.environ.get("UPDATE_DOCS"):
        update_page(page, name)
    mismatches = run_page(page, name)
    assert not mismatches, "\n\n".join(m.describe(page) for m in mismatches)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


PAGE = (
    "# Title",
    "```python",
    "x = 20",
    "print(x + 1)",
    "```",
    "<!-- output -->",
    "```text",
    "21",
    "```",
    "```sh",
    "exit 1",
    "```",
    "```python",
    "print('a'); print(x * 2)",
    "```",
    "It prints:",
    "",
    "<!-- output -->",
    "",
    "```text",
    "a",
    "...0",
    "```",
)


def test_blocks_are_found_with_their_lines(tmp_path: Path) -> None:
    blocks = find_blocks("\n".join(PAGE))
    assert [block.kind for block in blocks] == ["python", "output", "python", "output"]
    assert blocks[0].text == "x = 20\nprint(x + 1)"
    assert [PAGE[block.start] for block in blocks] == [
        "x = 20", "21", "print('a'); print(x * 2)", "a",
    ]  # fmt: skip


def test_a_right_page_passes(tmp_path: Path) -> None:
    assert run_page(write(tmp_path / "page.md", *PAGE)) == []


def test_a_text_block_without_the_mark_is_prose(tmp_path: Path) -> None:
    page = write(tmp_path / "page.md", *(line for line in PAGE if line != "<!-- output -->"))
    assert [block.kind for block in find_blocks(page.read_text())] == ["python", "python"]


def test_a_wrong_output_is_reported_with_its_line(tmp_path: Path) -> None:
    page = write(tmp_path / "page.md", *(line.replace("21", "22") for line in PAGE))
    (mismatch,) = run_page(page)
    assert mismatch.describe(page) == f"{page}:8: the page says\n22\nbut the snippet printed\n21"


def test_an_exception_names_the_line_of_the_page(tmp_path: Path) -> None:
    page = write(tmp_path / "page.md", "Text", "", "```python", "x = 1", "x / 0", "```")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page)
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == (str(page), 5)


def test_update_writes_what_is_printed(tmp_path: Path) -> None:
    page = write(tmp_path / "page.md", *(line.replace("21", "22\n23") for line in PAGE))
    assert update_page(page) == 1
    assert page.read_text() == "\n".join(PAGE) + "\n"
    assert update_page(page) == 0
