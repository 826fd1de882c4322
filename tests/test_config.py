import re

import pytest

from tensorlang.config import Settings, check_python, read_settings


def test_defaults():
    assert read_settings({}) == Settings(None, "auto", None, "cpu")
    assert read_settings({"TENSORLANG_TARGET": " ", "OMP_NUM_THREADS": "many"}) == Settings()


def test_values():
    environment = {
        "TENSORLANG_OPENMP": "none",
        "TENSORLANG_PARALLEL_FROM": "0",
        "TENSORLANG_TARGET": "cpu -mcpu=znver3",
        "TENSORLANG_CPU": "haswell",
        "OMP_NUM_THREADS": "4,2",
    }
    assert read_settings(environment) == Settings(4, "none", 0.0, "cpu -mcpu=znver3", cpu="haswell")
    assert read_settings({**environment, "TENSORLANG_NUM_THREADS": "3"}).num_threads == 3
    cache = read_settings({"TENSORLANG_CACHE": "OFF", "TENSORLANG_CACHE_SIZE": "500 MiB"})
    assert (cache.cache, cache.cache_bytes) == ("off", 500 << 20)
    assert read_settings({"TENSORLANG_CACHE": "/x"}).cache == "/x"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("TENSORLANG_CACHE_SIZE", "much",
         "TENSORLANG_CACHE_SIZE must be a number of bytes such as 500M or 2G, found 'much'"),
        ("TENSORLANG_NUM_THREADS", "0",
         "TENSORLANG_NUM_THREADS must be an integer >= 1, found '0'"),
        ("TENSORLANG_NUM_THREADS", "two",
         "TENSORLANG_NUM_THREADS must be an integer >= 1, found 'two'"),
        ("TENSORLANG_PARALLEL_FROM", "nan",
         "TENSORLANG_PARALLEL_FROM must be a number >= 0, found 'nan'"),
        ("TENSORLANG_PARALLEL_FROM", "x",
         "TENSORLANG_PARALLEL_FROM must be a number >= 0, found 'x'"),
    ],
)  # fmt: skip
def test_values_without_meaning(name, value, text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        read_settings({name: value})


def test_free_threaded_python_is_refused(monkeypatch):
    check_python()
    monkeypatch.setattr("sys._is_gil_enabled", lambda: False, raising=False)
    text = (
        "tensorlang was not checked with free-threaded Python, and calls rely on its lock.\n"
        "Set PYTHON_GIL=1 to run with the lock, or use the usual build of Python."
    )
    with pytest.raises(ImportError, match=f"^{re.escape(text)}$"):
        check_python()
