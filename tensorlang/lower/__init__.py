"""Lowering: an ordered, named list of passes from the scheduled program to flat loops."""
