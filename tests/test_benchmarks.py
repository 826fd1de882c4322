"""The benchmark page: its marks, and how figures become tables."""

from benchmarks.run import BEGIN, END, PAGE, Target, _by_threads


def test_the_page_has_room_for_the_figures() -> None:
    page = PAGE.read_text()
    assert page.count(BEGIN) == page.count(END) == 1
    assert page.index(BEGIN) < page.index(END)


def test_targets_say_whether_they_are_reached() -> None:
    assert str(Target("proof", 79.96, 80)) == "| proof | 80 ms | 80 ms | yes |"
    assert str(Target("time", 1.52, 1.5, "x")) == "| time | 1.52 x | 1.5 x | **no** |"


def test_tables_have_a_column_for_each_number_of_threads() -> None:
    tables = {1: {"NumPy": 20.0, "ours": 10.0}, 2: {"NumPy": 10.0, "ours": 5.0}}
    assert _by_threads(tables, work=2e9) == [
        "| program | 1 thread(s), ms (GFLOP/s) | 2 thread(s), ms (GFLOP/s) |",
        "|---|---:|---:|",
        "| NumPy | 20.00 (100) | 10.00 (200) |",
        "| ours | 10.00 (200) | 5.00 (400) |",
    ]
