"""Exact integer reasoning on loop nests, through isl: what makes a schedule's proof.

Nothing here is imported by ``import tensorlang``: default schedules never need it.
"""
