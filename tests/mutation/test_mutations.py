"""Every mistake is noticed; without one, nothing is."""

from pathlib import Path

import pytest

from tests.mutation.battery import notices
from tests.mutation.cases import CASES
from tests.mutation.mutate import Mutation, applied
from tests.mutation.mutations import MUTATIONS


def test_nothing_is_noticed_where_nothing_is_wrong():
    assert notices(None, tuple(CASES)) == {}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_mistake_is_noticed(mutation: Mutation):
    assert notices(mutation, mutation.cases), f"nothing notices that {mutation.mistake}"


def test_every_case_serves_a_mistake():
    assert {name for mutation in MUTATIONS for name in mutation.cases} == set(CASES)


def test_the_page_lists_every_mistake():
    page = (Path(__file__).parents[2] / "docs" / "mutations.md").read_text()
    listed = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines()]
    assert listed[-len(MUTATIONS) :] == [mutation.mistake for mutation in MUTATIONS]
    assert "**nothing**" not in page


def test_a_stale_mutation_is_an_error():
    stale = Mutation("stale", "tensorlang.schedule.boxes:clipping_guard", "no such text", "", ())
    with (
        pytest.raises(AssertionError, match="'no such text' stands 0 times in"),
        applied(stale),
    ):
        pass
