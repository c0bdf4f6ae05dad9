"""Fingerprints of algorithms: what their proofs rest on, in one number."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..core.algorithm import Algorithm

_PACKAGE = Path(__file__).parents[1]
_MEANING = ("core/*.py", "readers/match.py", "readers/in_place.py", "readers/verify.py")
"""The modules that say what a schedule means and when it is right."""

_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b[^(\n]*(?:\([^)]*\))?", re.MULTILINE)


@functools.cache
def fingerprint(algorithm: Algorithm) -> str | None:
    """Hash all that a proof of an algorithm rests on.

    That is its record, the source of the module that defines it, of all modules that this imports from its own folder or
    from `treering.algorithms`, and so on, and of what gives schedules their meaning.

    Returns
    -------
    str or None
        None if there is no source, as for a function typed at a prompt.
    """
    defined_in = inspect.getsourcefile(inspect.unwrap(algorithm.function))
    if defined_in is None or not Path(defined_in).is_file():
        return None
    digest = hashlib.sha256(_meaning())
    for text in (*_record(algorithm), *map(_text, sorted(_used_by(Path(defined_in)), key=lambda path: path.name))):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:32]


def _record(algorithm: Algorithm) -> Iterator[str]:
    """The fields of the record that a proof rests on. Functions among them are in the source."""
    parameters = tuple((p.name, p.default, p.minimum) for p in algorithm.parameters)
    yield from (str(algorithm), algorithm.function.__name__, repr(algorithm.in_order), repr(parameters))
    yield from (requirement.text for requirement in algorithm.requires)


@functools.cache
def _meaning() -> bytes:
    files = (path for pattern in _MEANING for path in sorted(_PACKAGE.glob(pattern)))
    return hashlib.sha256("\0".join(map(_text, files)).encode()).digest()


def _text(path: Path) -> str:
    # Universal newlines, so that a checkout with other line ends has the same fingerprint.
    return path.read_text(encoding="utf-8")


def _used_by(start: Path) -> set[Path]:
    """A module and those it imports from its own folder or from the algorithms, directly or not."""
    found, to_read = {start}, [start]
    while to_read:
        new = set(_imported(to_read.pop())) - found
        found |= new
        to_read += new
    return found


def _imported(module: Path) -> Iterable[Path]:
    """The modules that one imports. Any word of an import statement may be the name of one: too many do no harm."""
    words = {word for statement in _IMPORT.findall(_text(module)) for word in re.findall(r"\w+", statement)}
    for folder in {module.parent, _algorithms()}:
        for word in words:
            if (folder / f"{word}.py").is_file():
                yield folder / f"{word}.py"
            elif (folder / word / "__init__.py").is_file():
                yield from (folder / word).rglob("*.py")


@functools.cache
def _algorithms() -> Path:
    """The folder of the algorithms, wherever it is installed."""
    import treering.algorithms

    return Path(treering.algorithms.__path__[0])
