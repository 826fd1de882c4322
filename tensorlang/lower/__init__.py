"""Lowering: an ordered, named tuple of passes from the scheduled program to flat loops."""
