"""The reference executor: every level of the loop programs on NumPy arrays, fully checked."""
