"""Temporaries that live at the same time never overlap, and memory is used again."""

from hypothesis import given
from hypothesis import strategies as st

from tensorlang.graph.memory_plan import ALIGNMENT, Lifetime, plan_memory

lifetimes = st.builds(
    lambda size, first, length: Lifetime(size, first, first + length),
    st.integers(0, 1000), st.integers(0, 10), st.integers(0, 5),
)  # fmt: skip


@given(st.lists(lifetimes, max_size=12))
def test_no_two_overlap(temporaries):
    plan = plan_memory(temporaries)
    placed = list(zip(temporaries, plan.offsets, strict=True))
    for number, (one, offset) in enumerate(placed):
        assert offset % ALIGNMENT == 0
        assert offset + one.bytes <= plan.bytes
        for other, place in placed[:number]:
            if one.meets(other) and one.bytes and other.bytes:
                assert offset + one.bytes <= place or place + other.bytes <= offset


def test_a_chain_takes_two_places():
    chain = [Lifetime(128, step, step + 1) for step in range(6)]
    assert plan_memory(chain).bytes == 256
