"""The examples in the docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tensorlang.lang

MODULES = [module.name for module in pkgutil.iter_modules(tensorlang.lang.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"tensorlang.lang.{name}")
    assert doctest.testmod(module).failed == 0
