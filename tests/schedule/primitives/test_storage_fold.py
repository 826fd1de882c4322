"""storage_fold: buffers in a circle, and what takes their place too early."""
# ruff: noqa: E501 - printed programs

import pytest

import tensorlang as tl
from tensorlang.poly.proof import prove
from tensorlang.schedule.place_inits import place_inits
from tensorlang.schedule.primitives.storage_fold import StorageFold
from tests.schedule.checks import accepts, compiles, prints, refused, start


def sliding(s):
    s.reverse_compute_at("blur", "rows/i")


def folded(size):
    def steps(s):
        sliding(s)
        s.storage_fold("rows", 0, size)

    return steps


def test_program_after():
    s = start("blur")
    folded(3)(s)
    prints(
        s,
        """
        rows = global f32[H + 2, W] laid out (i, j) -> (i % 3, j), folded
        for i in H + 2:
            for j in W:
                rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
            for j in W:
                blur[i - 2, j] = rows[i - 2, j] + rows[i - 1, j] + rows[i, j]  # if i - 2 >= 0
        """,
    )


@pytest.mark.parametrize("size", [3, 4, 8])
def test_sizes_that_hold_the_window(size):
    accepts("blur", folded(size), (0, 1, 2, 5, 9))
    compiles("blur", folded(size), (0, 1, 2, 5, 9))


def test_memory():
    s = start("blur")
    folded(3)(s)
    assert "rows = global f32[3 * W]" in tl.compile(s).source("loops")


def test_vectors_along_the_other_axis():
    def steps(s):
        folded(4)(s)
        for loop in s["rows"].loops[-1], s["blur"].loops[-1]:
            _, inner = s.split(loop, 4)
            s.vectorize(inner)

    accepts("blur", steps, (0, 1, 5, 9))
    compiles("blur", steps, (1, 5, 9))


def test_a_chain_of_elements():
    def steps(s):
        s.compute_inline("first")
        s.reverse_compute_at("chain", "second/i")
        s.storage_fold("second", 0, 1)

    accepts("chain", steps, (0, 1, 5))
    compiles("chain", steps, (0, 1, 5))


def test_refused():
    s = start("blur")
    sliding(s)
    refused(
        s,
        lambda: s.storage_fold("rows", 0, 2),
        """
        storage_fold('rows', 0, 2) is refused: 2 positions of axis 0 do not hold what is read of rows
          AT

        Counterexample: an element of rows is overwritten before it is read
        sizes:  H = 1, W = 1
        loops:  i = 2, j = 0
                blur[i=0, j=0] reads rows[0, 0]
                whose place was taken when rows[i=2, j=0] writes rows[2, 0]
        in:     blur[i - 2, j] = rows[i - 2, j] + rows[i - 1, j] + rows[i, j]  # if i - 2 >= 0

        Try: a larger size, or compute the stage closer to its readers: reverse_compute_at
        """,
    )


def test_claims():
    s = start("blur")
    for step, claim in (
        (lambda: s.storage_fold("image", 0, 3), "image belongs to the caller"),
        (lambda: s.storage_fold("rows", 2, 3), "rows has no axis 2"),
        (lambda: s.storage_fold("rows", -1, 3), "rows has no axis -1"),
        (lambda: s.storage_fold("rows", 0, 0), "0 is no number of positions"),
        (lambda: s.storage_fold("rows", 0, 3), "3 positions of axis 0 do not hold"),
    ):
        with pytest.raises(tl.ScheduleError, match=claim):
            step()
    s.layout("rows", lambda i, j: (j, i))
    with pytest.raises(tl.ScheduleError, match="rows has a layout already"):
        s.storage_fold("rows", 0, 3)


@pytest.mark.parametrize("size", [1, 2])
def test_what_the_check_refuses_the_proof_refutes(size):
    s = start("blur")
    sliding(s)
    tensor = s.program.stages[0].tensor
    program = StorageFold(tensor, 0, size).apply(s.program).program
    evidence = prove(place_inits(program))
    assert [claim.name for claim in evidence.claims if not claim.holds] == ["folding"]
    assert evidence.counterexample.refuted


def test_iterations_that_share_places_are_not_independent():
    s = start("blur")
    folded(3)(s)
    for step in (lambda: s.parallel("rows/i"), lambda: s.unroll("rows/i", factor=2)):
        before = s.program
        try:
            step()
        except tl.ScheduleError as error:
            assert "are not independent" in str(error)  # noqa: PT017
            assert s.program is before
    assert s.verify().ok
