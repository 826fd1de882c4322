"""What a person sees in a terminal, and what a pipe gets."""

import io

import pytest

from tensorlang.cli.console import Display, make_display


@pytest.fixture
def pipe() -> tuple[Display, io.StringIO]:
    file = io.StringIO()
    return make_display(file), file


@pytest.fixture
def terminal() -> tuple[Display, io.StringIO]:
    file = io.StringIO()
    return make_display(file, terminal=True), file


def test_a_pipe_gets_plain_text(pipe: tuple[Display, io.StringIO]) -> None:
    display, file = pipe
    long_line = "for i in M:  # [bold]" + " C[i] +" * 60
    display.heading("The [loops]")
    display.code(long_line)
    display.table("Times", ("program", "ms"), [("SciPy", "12.0"), ("ours [mean]", "1.5")])
    with display.step("Working"):
        display.text("at it")
    assert list(display.progress(range(2), "Counting")) == [0, 1]
    assert "\x1b" not in file.getvalue()
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "",
        "## The [loops]",
        long_line,
        "Times",
        "",
        "| program     |   ms |",
        "| ----------- | ---: |",
        "| SciPy       | 12.0 |",
        "| ours [mean] |  1.5 |",
        "",
        "Working ...",
        "at it",
    ]


def test_a_wide_table_is_not_cut_in_a_pipe(pipe: tuple[Display, io.StringIO]) -> None:
    display, file = pipe
    display.table("T", ("a", "b"), [("x" * 150, "y" * 150)], figures=False)
    assert "x" * 150 in file.getvalue()
    assert "y" * 150 in file.getvalue()


def test_a_terminal_gets_colours_and_boxes(terminal: tuple[Display, io.StringIO]) -> None:
    display, file = terminal
    display.heading("Loops")
    display.code("for i in range(3):\n    pass")
    display.table("Times", ("program", "ms"), [("SciPy", "12.0")])
    assert "\x1b[" in file.getvalue()
    assert "╭" in file.getvalue()
