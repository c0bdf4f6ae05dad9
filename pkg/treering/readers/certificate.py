"""Certificates: what has been proved, so that what runs need not prove it again.

A certificate says for which sizes and roots an algorithm was proved, and the fingerprint of the source that was proved. Those
of the table come with the package; `treering verify` keeps others in the user's cache. A certificate whose fingerprint differs
from that of the present source counts for nothing.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from ..core.algorithm import Algorithm
from .ranges import numbers, spelled
from .source import fingerprint
from .sweep import Proof, some_roots

SHIPPED = Path(__file__).parents[1] / "certificates.json"
"""The certificates of the table."""

_log = logging.getLogger("treering")


@dataclass(frozen=True)
class Certificate:
    """The fingerprint of an algorithm's source, and the sizes that were proved for all roots and for some."""

    source: str
    all_roots: frozenset[int] = frozenset()
    some_roots: frozenset[int] = frozenset()

    def covers(self, size: int, root: int) -> bool:
        return size in self.all_roots or (size in self.some_roots and root in some_roots(size))

    def joined(self, other: Certificate | None) -> Certificate:
        """What both prove, if they speak of the same source; else this one."""
        if other is None or other.source != self.source:
            return self
        everywhere = self.all_roots | other.all_roots
        return Certificate(self.source, everywhere, (self.some_roots | other.some_roots) - everywhere)


Certificates = Mapping[str, Certificate]
"""By the names of collective and algorithm, with parameters that are not at their defaults."""


def is_proved(algorithm: Algorithm, size: int, root: int = 0, parameters: Mapping[str, int] | None = None) -> bool:
    """Whether there is a certificate for an algorithm as it stands in its source now. This only looks; it proves nothing."""
    source = fingerprint(algorithm)
    if source is None:
        return False
    name = named(algorithm, parameters or {})
    found = (known.get(name) for known in (_shipped(), _cached()))
    return any(c.source == source and c.covers(size, root) for c in found if c)


def variants(algorithm: Algorithm) -> list[dict[str, int]]:
    """The settings of an algorithm, other than its defaults, that are chosen for some payload."""
    names = [parameter.name for parameter in algorithm.parameters]
    settings = [dict(zip(names, values)) for values in product(*(p.usual for p in algorithm.parameters))]
    return [given for given in settings if given != algorithm.settings({})]


def certify(proofs: Iterable[Proof]) -> Certificates:
    """Certificates of what proofs prove; none for an algorithm without source."""
    return {named(proof.algorithm, proof.parameters): certificate
            for proof in proofs if (certificate := _certificate(proof))}


def keep(certificates: Certificates) -> None:
    """Add certificates to the user's cache; those that came with the package need not be there."""
    new = {name: certificate for name, certificate in certificates.items() if not _is_shipped(name, certificate)}
    if not new:
        return
    known = dict(_cached())
    known |= {name: certificate.joined(known.get(name)) for name, certificate in new.items()}
    try:
        cache_file().parent.mkdir(parents=True, exist_ok=True)
        write(cache_file(), known)
    except OSError as error:
        _log.warning("treering: certificates cannot be kept in %s: %s", cache_file(), error.strerror)
    _cached.cache_clear()


def cache_file() -> Path:
    """Where the user's certificates are."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base, "treering", "certificates.json")


def read(path: Path) -> Certificates:
    """Read certificates. A file that is missing has none; nor has one that makes no sense, which is said in a warning."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {name: _from_json(fields) for name, fields in content.items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        _log.warning("treering: certificates in %s cannot be read: %s", path, error.strerror)
    except (ValueError, TypeError, KeyError, AttributeError):
        _log.warning("treering: %s is no file of certificates and is ignored", path)
    return {}


def write(path: Path, certificates: Certificates) -> None:
    """Write certificates, one line each; whoever reads at the same time sees the old file or the new one."""
    lines = (f"{json.dumps(name)}: {json.dumps(_to_json(c))}" for name, c in sorted(certificates.items()))
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".treering-") as folder:
        temporary = Path(folder, path.name)
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        temporary.replace(path)


def _certificate(proof: Proof) -> Certificate | None:
    source, sizes = fingerprint(proof.algorithm), frozenset(proof.sizes)
    if source is None or not sizes:
        return None
    rooted = proof.algorithm.collective.rooted
    complete = {size for size in sizes if not rooted or len(proof.roots(size)) == size}
    return Certificate(source, frozenset(complete), sizes - complete)


def _is_shipped(name: str, certificate: Certificate) -> bool:
    shipped = _shipped().get(name)
    return shipped is not None and shipped.joined(certificate) == shipped and shipped.source == certificate.source


def named(algorithm: Algorithm, parameters: Mapping[str, int]) -> str:
    """The name under which a certificate is kept."""
    return f"{algorithm.collective} {algorithm.spell(algorithm.settings(parameters))}"


def _to_json(certificate: Certificate) -> dict[str, str]:
    sizes = {"all roots": certificate.all_roots, "some roots": certificate.some_roots}
    return {"source": certificate.source} | {which: spelled(some) for which, some in sizes.items() if some}


def _from_json(fields: Mapping[str, Any]) -> Certificate:
    return Certificate(fields["source"], numbers(fields.get("all roots", "")), numbers(fields.get("some roots", "")))


@functools.cache
def _shipped() -> Certificates:
    return read(SHIPPED)


@functools.cache
def _cached() -> Certificates:
    return read(cache_file())
