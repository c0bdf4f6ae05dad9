"""Read a Hugging Face ``config.json``, trusting nothing in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from ..core.errors import TreeringError

MAX_FILE_BYTES = 1 << 20
"""The longest config.json of a known model is a few KiB; a file beyond this is something else."""

MAX_INTEGER = 10**9
"""No dimension of a model comes near it. The bound keeps a hostile file from asking for impossible loops."""


class ConfigError(TreeringError, ValueError):
    """A model's config that cannot be read, or lacks a fact that treering will not guess."""


class Config:
    """The keys of one model's config, each checked when it is asked for.

    Parameters
    ----------
    values
        What the file holds for the (text) model.
    source
        The name for error messages.
    """

    def __init__(self, values: Mapping[str, object], source: str) -> None:
        self._values = values
        self.source = source

    def refuse(self, why: str) -> NoReturn:
        """Raise the error that names the file and the reason."""
        raise ConfigError(f"{self.source}: {why}")

    def has(self, *names: str) -> bool:
        """Whether one of the names is there with a value; ``null`` counts as absent, as in transformers."""
        return self._find(names) is not None

    def integer(self, *names: str, default: int | None = None, minimum: int = 1) -> int:
        """Return the integer under the first of several names that is present.

        Parameters
        ----------
        names
            The key and its aliases in other families.
        default
            What the *family's own definition* says when the key is absent; never a typical value. Without it the key
            is required.
        minimum
            The least sensible value.
        """
        found = self._find(names)
        if found is None:
            if default is None:
                self.refuse(f"lacks {_either(names)}")
            return default
        name, value = found
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(f"{name} must be an integer, not {_short(value)}")
        if not minimum <= value <= MAX_INTEGER:
            self.refuse(f"{name} must be from {minimum} to {MAX_INTEGER}, not {_short(value)}")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """Return a truth value, or what the family's definition says when the key is absent."""
        found = self._find((name,))
        if found is None:
            return default
        if not isinstance(found[1], bool):
            self.refuse(f"{name} must be true or false, not {_short(found[1])}")
        return found[1]

    def text(self, name: str) -> str:
        """Return a required string."""
        found = self._find((name,))
        if found is None:
            self.refuse(f"lacks {name}")
        if not isinstance(found[1], str):
            self.refuse(f"{name} must be a string, not {_short(found[1])}")
        return found[1]

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a list of integers, empty when the key is absent."""
        found = self._find((name,))
        if found is None:
            return ()
        value = found[1]
        if not isinstance(value, list) or any(isinstance(item, bool) or not isinstance(item, int) for item in value):
            self.refuse(f"{name} must be a list of integers")
        return tuple(value)

    def _find(self, names: tuple[str, ...]) -> tuple[str, object] | None:
        for name in names:
            value = self._values.get(name)
            if value is not None:
                return name, value
        return None


def read_config(path: str | Path) -> Config:
    """Read ``config.json``; of a multi-modal model, the part that describes its text model.

    Raises
    ------
    ConfigError
        When the file is no JSON object, is too large or too deeply nested, or holds numbers that JSON does not have.
    """
    source = Path(path)
    try:
        with source.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{source}: {error.strerror or error}") from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{source}: larger than {MAX_FILE_BYTES} bytes, so not a model's config.json")
    try:
        values = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply for a model's config.json") from None
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError and numbers of too many digits
        raise ConfigError(f"{source}: not JSON: {error}") from None
    return config_of(values, str(source))


def config_of(values: object, source: str = "config") -> Config:
    """Return the checked view of a config that is already in memory."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{source}: a model's config must be a JSON object, not {_short(values)}")
    text = values.get("text_config")
    if isinstance(text, Mapping):
        # Facts about the whole (is the embedding tied, which family) may stand at either level; the inner one wins.
        shared = {name: values[name] for name in ("model_type", "tie_word_embeddings") if name in values}
        values = {**shared, **{name: value for name, value in text.items() if value is not None}}
    return Config(values, source)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} (also known as {', '.join(names[1:])})"


def _short(value: object) -> str:
    """Name a wrong value in an error message, however large or deep it is."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return "a number beyond it"
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
