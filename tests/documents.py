"""What the documents show, for the tests that hold them to it."""

from __future__ import annotations

import re
from pathlib import Path

from treering.table import load

ROOT = Path(__file__).parents[1]


def blocks(name: str, language: str) -> list[str]:
    """The code blocks of one language in a document."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def contributed() -> str:
    """The algorithm that CONTRIBUTING shows."""
    (code,) = [block for block in blocks("CONTRIBUTING.md", "python") if "@algorithm" in block]
    return code


def imported(code: str, folder: Path) -> None:
    """Enter the algorithm that some code declares into the table, as a user's file does."""
    path = folder / "mine.py"
    path.write_text(code, encoding="utf-8")
    load(path)
