"""Pictures: golden ones, broken schedules with the place marked, and pages that need nothing from elsewhere."""

from __future__ import annotations

import doctest
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from textwrap import dedent
from typing import Any

import pytest

import treering
import treering.table as table
from treering.core import Recv, Reduce, Round, Schedule, Send
from treering.core.algorithm import TABLE, Algorithm
from treering.readers.count import count
from treering.readers.match import Flaw
from treering.readers.show import before_after, embedded, html, svg, text
from treering.readers.show.film import film
from treering.readers.verify import verify


def picture(schedule: Schedule, **settings: Any) -> str:
    """The grid, without its title and legend."""
    return text(schedule, **{"width": 100, **settings}).split("\n\n")[1]


def drawn(grid: str) -> str:
    return dedent(grid).strip("\n")


@pytest.mark.parametrize("name", [
    "table", "readers.bounds", "readers.claims", "readers.count", "readers.show.text", "readers.show.words",
    "readers.show.before_after", "cli.layout"])
def test_examples_in_docstrings(name: str) -> None:
    module = import_module(f"treering.{name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_a_reduction_counts_contributions() -> None:
    assert picture(treering.schedule("reduce", "binomial", 3)).strip() == drawn("""
        round │ rank 0    │ rank 1    │ rank 2
       ───────┼───────────┼───────────┼───────────
       before │ 1         │ 1         │ 1
       ───────┼───────────┼───────────┼───────────
            1 │ ←1:+0     │ →0:0      │ -
              │ 2         │ ·         │ 1
       ───────┼───────────┼───────────┼───────────
            2 │ ←2:+0     │ -         │ →0:0
              │ Σ         │ ·         │ ·""").strip()


def test_phases_are_named_and_blocks_that_are_not_needed_vanish() -> None:
    lines = picture(treering.schedule("all-reduce", "ring", 3)).splitlines()
    assert [line.strip() for line in lines if "rank" not in line and re.search(r"[a-z]{4}", line)][1:] == [
        "reduce-scatter", "all-gather"]
    assert [line.split("│")[1].strip() for line in lines if "Σ" in line] == ["Σ · ·", "Σ · Σ", "Σ Σ Σ"]


def test_rounds_run_beside_each_other_as_they_really_do() -> None:
    # In a pipeline the third rank's first round is the third of all.
    rows = picture(treering.schedule("broadcast", "chain:segments=3", 4)).split("\n───────┼")[2:]
    assert ["←2" in row for row in rows] == [False, False, True, True, True]


def test_an_all_to_all_names_sources_and_destinations() -> None:
    grid = picture(treering.schedule("all-to-all", "pairwise", 3))
    assert "→1:0→1 ←2:2→0" in grid
    assert grid.splitlines()[-1].split("│")[3].strip() == "0→2 1→2 2→2"


@pytest.mark.parametrize("width", [30, 60, 80, 132])
@pytest.mark.parametrize(("collective", "name", "size"), [
    ("all-reduce", "ring", 6), ("all-to-all", "bruck", 9), ("all-gather", "doubling", 40), ("reduce", "linear", 64),
    ("broadcast", "chain", 3), ("scatter", "halving", 100)])
def test_it_fits_the_terminal(collective: str, name: str, size: int, width: int) -> None:
    grid = text(treering.schedule(collective, name, size), width).split("\n\n", 1)[1]
    assert max(map(len, grid.splitlines())) <= width


def test_ranks_that_do_not_fit_are_said_to_be_left_out() -> None:
    assert "Only ranks 0 to 5 of 64" in re.sub(r"\s+", " ", text(treering.schedule("broadcast", "binomial", 64), 80))


def test_many_contributions_are_still_told_apart() -> None:
    last = picture(treering.schedule("reduce", "linear", 16), width=40).splitlines()
    assert [line.split("│")[1].strip() for line in last if re.match(r" +│", line)][8:] == list("abcdefΣ")


# ---- broken schedules ----

def broken(rank: int, index: int, change: Callable[[Round], list[Round]], size: int = 4) -> Schedule:
    """A ring of which one round of one rank is replaced."""
    ring = treering.schedule("all-reduce", "ring", size)

    def program(at: int) -> list[Round]:
        rounds = list(ring.rounds(at))
        if at == rank:
            rounds[index:index + 1] = change(rounds[index])
        return rounds
    return replace(ring, program=program)


def failure(schedule: Schedule) -> Flaw:
    with pytest.raises(Flaw) as caught:
        verify(schedule)
    return caught.value


def marked_rank(grid: str) -> int:
    """The column in which the only mark stands, which must be in the last line of the grid."""
    assert grid.count("✗") == 1
    return next(at for at, cell in enumerate(grid.splitlines()[-1].split("│")[1:]) if "✗ here" in cell)


def test_a_deadlock_is_drawn_up_to_where_everyone_waits() -> None:
    schedule = broken(1, 1, lambda r: [Round(Send(3, *r.sends[0].slots), *r.recvs, *r.local)])
    flaw = failure(schedule)
    grid = picture(schedule, mark=(flaw.rank, flaw.round))
    assert "breaks off after" in text(schedule)
    stuck = grid.split("stuck")[1]
    assert re.split(r" *│ *", stuck.splitlines()[0])[1:] == ["→1:1?", "→3:3?", "←1:3?", "←2:3?"]
    assert marked_rank(grid) == flaw.rank == 0


def test_a_block_that_is_not_expected_is_marked() -> None:
    schedule = broken(2, 2, lambda r: [])
    flaw = failure(schedule)
    assert "expects block" in flaw.what
    assert marked_rank(picture(schedule, mark=(flaw.rank, flaw.round))) == 2


def test_a_doubled_contribution_is_marked_in_its_round_and_nothing_after_it_is_drawn() -> None:
    schedule = broken(1, 1, lambda r: [Round(*r.sends, *r.recvs, *r.local, Reduce(r.local[0].into, *[r.local[0].into] * 2))])
    flaw = failure(schedule)
    grid = picture(schedule, mark=(flaw.rank, flaw.round))
    assert "twice" in flaw.what
    assert marked_rank(grid) == 1
    assert "     2 │" in grid and "     3 │" not in grid


def test_what_is_missing_at_the_end_is_marked_at_the_end() -> None:
    schedule = broken(3, 5, lambda r: [Round(*r.sends, Recv(2, r.recvs[0].slots[0]._replace(space="elsewhere")))])
    flaw = failure(schedule)
    assert flaw.round is None
    grid = picture(schedule, mark=(flaw.rank, None))
    assert marked_rank(grid) == 3
    assert "     6 │" in grid


def test_the_marked_rank_is_among_those_that_are_drawn() -> None:
    grid = picture(treering.schedule("broadcast", "binomial", 64), width=60, mark=(50, 0))
    assert "rank 50" in grid and "✗ here" in grid and "rank 0 " not in grid


# ---- films, pages and drawings ----

@pytest.mark.parametrize("algorithm", TABLE.values(), ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 6, 8])
def test_every_film_ends_with_what_the_collective_promises(algorithm: Algorithm, size: int) -> None:
    if algorithm.why_not(size):
        return
    taken = film(algorithm.schedule(size, root=size - 1 if algorithm.collective.rooted else 0))
    assert taken.flaw is None and not taken.waiting
    last = taken.frames[-1].held if taken.frames else taken.before
    assert last == taken.wanted or size == 1


class WellFormed(HTMLParser):
    """Notes which tags are open, and every address that is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br", "path", "rect", "circle", "img"):
            self.open.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect", "circle"):
            assert self.open.pop() == tag


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r"const film = (\{.*\});", page)
    assert found
    loaded: dict[str, Any] = json.loads(found[1])
    return loaded


@pytest.mark.parametrize(("collective", "name"), [
    ("all-reduce", "ring"), ("all-to-all", "bruck"), ("broadcast", "binomial"), ("reduce-scatter", "linear")])
def test_the_page_is_well_formed_and_needs_nothing_else(collective: str, name: str) -> None:
    page = html(treering.schedule(collective, name, 5))
    parser = WellFormed()
    parser.feed(page)
    assert not parser.open and not parser.addresses
    assert not re.search(r"https?:|//[a-z]|@import|url\(", page.replace("// ", ""))
    assert "{{" not in page
    assert f"<title>{collective} {name} on 5 ranks" in page


def test_the_page_replays_to_the_result() -> None:
    data = data_of(html(treering.schedule("all-reduce", "ring", 4)))
    state: dict[tuple[int, int], str] = {}
    for changes in data["changes"]:
        state.update({(rank, place): mask for rank, place, mask in changes})
    assert state == {(rank, block): "f" for rank in range(4) for block in range(4)}
    assert [frame["phase"] for frame in data["frames"]] == ["reduce-scatter"] * 3 + ["all-gather"] * 3
    assert data["frames"][0]["messages"][0] == [0, 1, [3], 1]


def test_a_name_cannot_break_out_of_the_page() -> None:
    hostile = replace(treering.schedule("all-gather", "ring", 3), name="</script><script>alert(1)//")
    assert html(hostile).count("<script>") == 1
    assert svg(hostile).count("<script>") == 0


def test_a_notebook_shows_a_schedule_as_a_frame_of_its_own() -> None:
    schedule = treering.schedule("all-gather", "ring", 3)
    shown = schedule._repr_html_()
    assert shown == embedded(schedule)
    parser = WellFormed()
    parser.feed(shown or "")
    assert (shown or "").startswith("<iframe") and not parser.open


@pytest.mark.parametrize(("collective", "name", "size"), [
    ("all-reduce", "halving-doubling", 6), ("all-to-all", "linear", 4), ("broadcast", "chain", 40), ("scatter", "ring", 2),
    ("all-reduce", "ring", 1)])
def test_the_drawing_has_an_arrow_for_every_message(collective: str, name: str, size: int) -> None:
    schedule = treering.schedule(collective, name, size)
    drawing = ElementTree.fromstring(svg(schedule))
    arrows = [e for e in drawing.iter("{http://www.w3.org/2000/svg}path") if e.get("class") == "message"]
    assert len(arrows) == count(schedule).total.messages_sent
    labels = [e for e in drawing.iter("{http://www.w3.org/2000/svg}text") if e.get("class") == "label"]
    assert len(labels) == (len(arrows) if size <= 16 else 0)
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", svg(schedule))


def test_before_and_after_of_rooted_collectives() -> None:
    find = table.find_collective
    assert before_after(find("bcast"), 2, root=1).splitlines()[2:] == [
        "rank  before     after", "   0  ·       →  B", "   1  B       →  B"]
    assert before_after(find("scatter"), 3, root=1).splitlines()[3:] == [
        "   0  ·         →  B0", "   1  B0 B1 B2  →  B1", "   2  ·         →  B2"]
