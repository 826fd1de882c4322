"""``tl.compile``, and what happens when an operator is called."""
