"""``tl.compile``, and what happens when an operator is called with arrays."""

from tensorlang.driver.entry import compile
from tensorlang.driver.specialize import SpecializingFunction
from tensorlang.targets.ceilings import Ceilings, provide_ceilings

__all__ = ["SpecializingFunction", "compile"]


def _measure() -> Ceilings:
    from tensorlang.driver.measure_ceilings import measure_ceilings

    return measure_ceilings()


provide_ceilings(_measure)
