"""Mistakes made on purpose, one at a time: something must notice each.

``python -m tests.mutation`` makes them all and writes the table of ``docs/mutations.md``.
"""
