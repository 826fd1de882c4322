import threading

import pytest

from tensorlang.driver.once import OncePerKey


def test_one_value_per_key_among_threads():
    once, made, results = OncePerKey(), [], []
    start = threading.Barrier(8)

    def ask(key):
        def make():
            made.append(key)
            return object()

        start.wait()
        results.append((key, once.get(key, make)))

    threads = [threading.Thread(target=ask, args=(n % 2,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [0, 1]
    assert len(set(results)) == 2


def test_keys_do_not_wait_for_each_other():
    once, other_is_done = OncePerKey(), threading.Event()

    def slow():
        assert other_is_done.wait(timeout=30)
        return "slow"

    result = []
    thread = threading.Thread(target=lambda: result.append(once.get("a", slow)))
    thread.start()
    assert once.get("b", lambda: "quick") == "quick"
    other_is_done.set()
    thread.join()
    assert result == ["slow"]


def test_a_failure_is_not_remembered():
    once = OncePerKey()
    with pytest.raises(ZeroDivisionError):
        once.get("a", lambda: 1 // 0)
    assert once.get("a", lambda: 3) == 3
    assert once.get("a", lambda: 1 // 0) == 3
