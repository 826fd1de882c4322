"""Set up the whole suite: no deadlines on a busy machine, and parallel loops at small sizes too.

Compiled code is kept in a folder of its own: the suite neither reads nor fills the user's.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

os.environ.setdefault("TENSORLANG_PARALLEL_FROM", "0")

if "TENSORLANG_CACHE" not in os.environ:
    folder = tempfile.mkdtemp(prefix="tensorlang-tests-")
    os.environ["TENSORLANG_CACHE"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

# Each run draws other examples; TENSORLANG_TESTS=repeatable draws those of the run before again.
settings.register_profile(
    "tensorlang", deadline=None, derandomize=os.environ.get("TENSORLANG_TESTS") == "repeatable"
)
settings.load_profile("tensorlang")
