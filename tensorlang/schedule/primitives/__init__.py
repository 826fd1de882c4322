"""The primitives, one a file: a frozen dataclass with ``check`` (refuses) and ``apply`` (rewrites)."""
