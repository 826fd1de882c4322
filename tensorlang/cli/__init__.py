"""The ``tensorlang`` command. Nothing here is imported by ``import tensorlang``."""
