"""Long runs that show what short tests cannot: leaks, hangs, races.

``python -m tests.soak threads`` (two minutes), ``forks``, ``processes``; each prints its result and
exits with 1 if something was wrong. ``docs/threads.md`` holds the last ones.
"""
