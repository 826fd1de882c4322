"""Tests here import their builders (``hand_built``, ``python_kernels``) by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
