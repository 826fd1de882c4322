"""Backends: from a lowered program to something that runs."""
