"""The language: dims, comprehensions that are traced, and ``@tl.compute``."""
