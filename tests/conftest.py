"""Set up the whole suite: no deadlines on a busy machine, and parallel loops at small sizes too."""

import os

from hypothesis import settings

os.environ.setdefault("TENSORLANG_PARALLEL_FROM", "0")

settings.register_profile("tensorlang", deadline=None)
settings.load_profile("tensorlang")
