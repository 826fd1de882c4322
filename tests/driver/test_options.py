import re

import pytest

from tensorlang.driver.options import CompileOptions, make_options

GOOD = {
    "target": "cpu",
    "check_bounds": "auto",
    "verify": True,
    "fast_math": False,
    "opt_level": 3,
}


def test_defaults_are_those_of_a_plain_call():
    assert make_options(**GOOD) == CompileOptions()
    assert make_options(**{**GOOD, "target": "cpu -mcpu=haswell"}).target == "cpu -mcpu=haswell"


def test_strict_precision_is_no_tolerance():
    assert make_options(**GOOD, precision="strict").rtol == 0
    assert make_options(**GOOD, rtol=1e-5).rtol == 1e-5


@pytest.mark.parametrize(
    ("option", "value", "error", "text"),
    [
        ("target", None, TypeError, 'target must be a string such as "cpu", found None'),
        ("check_bounds", "always", ValueError,
         "check_bounds must be True, False or \"auto\", found 'always'"),
        ("check_bounds", 1, ValueError, 'check_bounds must be True, False or "auto", found 1'),
        ("verify", "no", TypeError, "verify must be True or False, found 'no'"),
        ("fast_math", 0, TypeError, "fast_math must be True or False, found 0"),
        ("opt_level", 4, ValueError, "opt_level must be 0, 1, 2 or 3, found 4"),
        ("opt_level", True, ValueError, "opt_level must be 0, 1, 2 or 3, found True"),
        ("rtol", -1, ValueError, "rtol must be a number from 0 up to 1, found -1"),
        ("rtol", "1e-4", ValueError, "rtol must be a number from 0 up to 1, found '1e-4'"),
        ("rtol", float("nan"), ValueError, "rtol must be a number from 0 up to 1, found nan"),
        ("precision", "low", ValueError,
         "precision must be \"default\" or \"strict\", found 'low'"),
        ("opt_level", "3", ValueError, "opt_level must be 0, 1, 2 or 3, found '3'"),
    ],
)  # fmt: skip
def test_values_without_meaning(option, value, error, text):
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        make_options(**{**GOOD, option: value})
