"""Parallel loops run in parallel here, however small the arrays."""

import pytest

from tensorlang.config import Settings


@pytest.fixture(autouse=True)
def parallel_from_the_first_element(monkeypatch):
    monkeypatch.setattr(
        "tensorlang.runtime.threads.settings", lambda: Settings(num_threads=2, parallel_from=0.0)
    )
