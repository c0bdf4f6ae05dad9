"""The map of the algorithms names all of them, each in its module's row."""

from __future__ import annotations

import re

import pytest
import treering.algorithms
from documents import ROOT

from treering.core import TABLE

README = (ROOT / "algorithms" / "README.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| \[`(\w+)`\]\(\w+\.py\) \|[^|]*\| (.*) \|$", README, re.MULTILINE))


@pytest.mark.parametrize("module", treering.algorithms.__all__)
def test_every_module_has_its_row_with_all_its_algorithms(module: str) -> None:
    mine = {a.name for a in TABLE.values() if a.function.__module__ == f"treering.algorithms.{module}"}
    assert set(re.findall(r"`([a-z0-9-]+)`", ROWS[module])) == mine


def test_there_are_no_rows_of_other_modules() -> None:
    assert set(ROWS) == set(treering.algorithms.__all__)
