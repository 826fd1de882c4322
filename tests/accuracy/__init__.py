"""How far each elementary function is from the exact value, over all inputs or dense samples."""
