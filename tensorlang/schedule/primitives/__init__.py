"""The primitives, one a file: a frozen dataclass that can ``check`` a step and ``apply`` it."""
