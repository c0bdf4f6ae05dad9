"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import treering.core
import treering.readers


def modules(package: ModuleType) -> list[str]:
    return [info.name for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]


@pytest.mark.parametrize("name", [*modules(treering.core), *modules(treering.readers), "treering.table"])
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    with_examples = {name for name in modules(treering.core)
                     if any(test.examples for test in finder.find(importlib.import_module(name)))}
    assert {"treering.core.schedule", "treering.core.group", "treering.core.layout"} <= with_examples
