"""What the documents show, for the tests that hold them to it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

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
    """Import code as a module of a user's, which enters its algorithm into the table."""
    path = folder / "tournament.py"
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("tournament", path)
    assert spec and spec.loader
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
