"""Schedules: rewriting a program's loops, one checked step at a time."""
