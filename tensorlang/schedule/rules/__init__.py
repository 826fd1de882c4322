"""Default schedules, chosen by what an operator is and written with the public primitives."""
