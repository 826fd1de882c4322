"""The intermediate representations: index and value expressions, definitions, loop programs."""
