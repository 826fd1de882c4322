"""Set up the whole suite: small sizes must run parallel loops in parallel too."""

import os

os.environ.setdefault("TENSORLANG_PARALLEL_FROM", "0")
