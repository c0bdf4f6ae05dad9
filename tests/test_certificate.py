"""Certificates: only what was proved, of the source as it is, and no trouble with files."""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from treering.core import POWER_OF_TWO, Algorithm, Parameter
from treering.readers import certificate, source
from treering.readers.certificate import Certificate, certify, is_proved, keep
from treering.readers.source import fingerprint
from treering.readers.sweep import all_roots, prove, some_roots
from treering.table import TABLE

HELPER = "def neighbour(rank, size):\n    return (rank + 1) % size\n"
USER = """
from treering.core import ALL_GATHER, TABLE, algorithm
from treering.algorithms import ring
from helper{n} import neighbour

TABLE.pop(("all-gather", "mine"), None)

@algorithm(ALL_GATHER, "mine", family="ring")
def mine(rank, size):
    "Mine."
    yield from ring.all_gather(rank, size)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache" / "treering" / "certificates.json"
    TABLE.pop(("all-gather", "mine"), None)
    forget()


def forget() -> None:
    """Be like a new process."""
    certificate._cached.cache_clear()
    certificate._shipped.cache_clear()
    fingerprint.cache_clear()


@pytest.fixture
def nothing_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(certificate, "SHIPPED", tmp_path / "none.json")
    forget()


counter = itertools.count()


def user_algorithm(folder: Path, helper: str = HELPER, more: str = "") -> Algorithm:
    """Load an algorithm from files of a user."""
    n = next(counter)
    (folder / f"helper{n}.py").write_text(helper)
    path = folder / f"user{n}.py"
    path.write_text(USER.format(n=n) + more)
    spec = importlib.util.spec_from_file_location(f"user{n}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        spec.loader.exec_module(module)
    return module.mine  # type: ignore[no-any-return]


def test_what_was_proved_is_known_in_the_next_process(cache: Path, tmp_path: Path) -> None:
    mine = user_algorithm(tmp_path)
    assert not is_proved(mine, 4)
    keep(certify(prove([(mine, {})], range(2, 6), workers=1)))
    forget()
    assert [is_proved(mine, size) for size in (1, 2, 5, 6)] == [False, True, True, False]
    assert json.loads(cache.read_text())["all-gather mine"] == {"source": fingerprint(mine), "all roots": "2-5"}


def test_what_is_proved_adds_up(tmp_path: Path) -> None:
    mine = user_algorithm(tmp_path)
    for size in (2, 4):
        keep(certify(prove([(mine, {})], [size], workers=1)))
    assert [is_proved(mine, size) for size in (2, 3, 4)] == [True, False, True]


@pytest.mark.usefixtures("nothing_shipped")
def test_roots_count() -> None:
    reduce = TABLE["reduce", "binomial"]
    keep(certify(prove([(reduce, {})], [4, 20], some_roots, workers=1)))
    assert is_proved(reduce, 4, 3) and is_proved(reduce, 20, 19) and not is_proved(reduce, 20, 2)
    keep(certify(prove([(reduce, {})], [20], all_roots, workers=1)))
    assert is_proved(reduce, 20, 2) and is_proved(reduce, 4, 3)


@pytest.mark.usefixtures("nothing_shipped")
def test_parameters_count() -> None:
    chain = TABLE["broadcast", "chain"]
    keep(certify(prove([(chain, {"segments": 3})], [4], workers=1)))
    assert is_proved(chain, 4, 0, {"segments": 3})
    assert not is_proved(chain, 4) and not is_proved(chain, 4, 0, {"segments": 2})


def test_a_fault_is_not_certified(tmp_path: Path) -> None:
    broken = user_algorithm(tmp_path, more='    if size == 5:\n        yield Round(Send(0))\n')
    certificates = certify(prove([(broken, {})], range(2, 8), workers=1))
    assert certificates["all-gather mine"].all_roots == {2, 3, 4}


def test_another_source_is_another_algorithm(tmp_path: Path) -> None:
    mine = user_algorithm(tmp_path)
    keep(certify(prove([(mine, {})], [4], workers=1)))
    other = user_algorithm(tmp_path, more="\n# changed\n")
    assert is_proved(mine, 4) and not is_proved(other, 4)


def test_the_fingerprint_depends_on_all_that_is_used(tmp_path: Path) -> None:
    mine = user_algorithm(tmp_path)
    first = fingerprint(mine)
    number = mine.function.__module__.removeprefix("user")
    unused = tmp_path / "unused.py"
    unused.write_text("x = 1\n")
    forget()
    assert fingerprint(mine) == first
    (tmp_path / f"helper{number}.py").write_text(HELPER + "# changed\n")
    forget()
    assert fingerprint(mine) != first


def test_the_fingerprint_depends_on_what_gives_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = TABLE["all-reduce", "ring"]
    first = fingerprint(ring)
    forget()
    monkeypatch.setattr(source, "_meaning", lambda: b"another verifier")
    assert fingerprint(ring) != first


def test_the_fingerprint_depends_on_the_record() -> None:
    ring = TABLE["all-reduce", "ring"]
    changed = [
        replace(ring, in_order=True), replace(ring, name="rings"), replace(ring, requires=(POWER_OF_TWO,)),
        replace(ring, parameters=(Parameter("radix", 2, 2, "of the tree"),))]
    assert len({fingerprint(algorithm) for algorithm in [ring, *changed]}) == 5


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    program = (
        "from treering.table import TABLE; from treering.readers.source import fingerprint;"
        "print(*map(fingerprint, TABLE.values()))")
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout == " ".join(str(fingerprint(a)) for a in TABLE.values()) + "\n"


def test_modules_used_are_found() -> None:
    def used(name: str) -> set[str]:
        return {path.stem for path in source._used_by(source._algorithms() / f"{name}.py")}

    assert used("linear") == {"linear"}
    assert {"halving", "ring", "tree"} <= used("halving")
    assert "linear" not in used("halving")


def test_without_source_there_is_no_certificate() -> None:
    scope: dict[str, object] = {}
    exec("def typed(rank, size):\n    yield", scope)
    typed = replace(TABLE["all-gather", "ring"], name="typed", function=scope["typed"])  # type: ignore[arg-type]
    assert fingerprint(typed) is None
    assert not is_proved(typed, 1)
    assert certify(prove([(typed, {})], [1], workers=1)) == {}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"all-gather mine": 3}', '{"all-gather mine": {"all roots": "x"}}', "\x00\xff"])
def test_a_corrupt_cache_is_said_and_ignored(
    content: str, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture,
) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(content.encode("latin-1"))
    mine = user_algorithm(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert not is_proved(mine, 3)
        assert not is_proved(mine, 3)
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"treering: {cache} is no file of certificates and is ignored"]
    keep(certify(prove([(mine, {})], [3], workers=1)))
    assert is_proved(mine, 3), "and it is written anew"


def test_an_unwritable_cache_is_said(cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache.parent.parent.write_text("a file where the folder should be")
    mine = user_algorithm(tmp_path)
    with caplog.at_level(logging.WARNING):
        keep(certify(prove([(mine, {})], [3], workers=1)))
    assert len(caplog.records) >= 1 and f"cannot be kept in {cache}" in caplog.records[-1].getMessage()
    assert not is_proved(mine, 3)


def test_the_cache_is_never_half_written(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = user_algorithm(tmp_path)
    keep(certify(prove([(mine, {})], [3], workers=1)))
    before = cache.read_text()

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    keep(certify(prove([(mine, {})], [4], workers=1)))
    assert cache.read_text() == before
    assert [path.name for path in cache.parent.iterdir()] == [cache.name], "and no temporary file stays"


def test_what_is_shipped_need_not_be_kept(cache: Path) -> None:
    ring = TABLE["all-reduce", "ring"]
    fresh = fingerprint(ring)
    assert fresh
    shipped = {"all-reduce ring": Certificate(fresh, frozenset(range(1, 65)))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "_shipped", lambda: shipped)
        keep(certify(prove([(ring, {})], [4], workers=1)))
        assert not cache.exists()


def test_a_lookup_reads_files_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = TABLE["all-reduce", "ring"]
    read: list[Path] = []
    read_text = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **options: read.append(path) or read_text(path, **options))
    is_proved(ring, 4)
    once = len(read)
    assert all(is_proved(ring, size) == is_proved(ring, size) for size in range(1, 100))
    assert len(read) == once


@pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)
def test_the_shipped_certificates_are_of_the_present_source(algorithm: Algorithm) -> None:
    shipped = certificate.read(certificate.SHIPPED)
    found = shipped.get(f"{algorithm.collective} {algorithm.name}")
    sizes = {size for size in range(1, 65) if algorithm.why_not(size) is None}
    advice = "the source has changed since it was proved: run `treering verify --ship`"
    assert found and found.source == fingerprint(algorithm) and found.all_roots >= sizes, advice
    for given in certificate.variants(algorithm):
        found = shipped.get(certificate.named(algorithm, given))
        assert found and found.source == fingerprint(algorithm) and found.all_roots | found.some_roots >= sizes, advice
