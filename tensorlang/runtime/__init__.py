"""From machine code in memory to a Python call: threads, arguments, the callable, timing."""
