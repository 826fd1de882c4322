"""``tl.compile``, and what happens when an operator is called with arrays."""

from tensorlang.driver.entry import compile
from tensorlang.driver.specialize import SpecializingFunction

__all__ = ["SpecializingFunction", "compile"]
