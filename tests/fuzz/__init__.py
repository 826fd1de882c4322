"""Random operators, schedules and sizes: interpreter, machine code and NumPy must agree.

``python -m tests.fuzz --cases 3000 --seed 1`` is the deep run; ``test_fuzz.py`` a short one.
"""
