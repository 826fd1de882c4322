"""What a scheduled program costs: counts from its loops, and the bound that a machine sets."""

from tensorlang.schedule.explain.costs import AccessCost, Explanation, LoopCost, StageCost
from tensorlang.schedule.explain.explain import explain

__all__ = ["AccessCost", "Explanation", "LoopCost", "StageCost", "explain"]
