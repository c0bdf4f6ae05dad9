"""Scratch memory: who lives at the same time lies apart, who is born together lies side by side."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treering.core.schedule import Space
from treering.running.scratch import Place, Run, Scratch

PARTIAL, ARRIVED = Space("partial"), Space("arrived")

lives = st.lists(
    st.lists(st.tuples(st.sampled_from([PARTIAL, ARRIVED]), st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=5),
    max_size=12)
"""For each moment, what happens to some slots: their size should they be written, and whether they are only read."""


def lived(moments: list[list[tuple[Space, int, int, bool]]]) -> tuple[Scratch, list[Place]]:
    """A scratch after such a life, and all places that it gave."""
    scratch = Scratch()
    places = []
    for now, events in enumerate(moments):
        for space, block, size, only_read in events:
            slot = space(block)
            if not only_read:
                places.append(scratch.write(slot, size, now))
            elif slot in scratch.live:
                scratch.use(slot, now)
    scratch.assign()
    return scratch, places


def span(place: Place) -> range:
    assert place.run is not None
    return range(place.run.start, place.run.stop)


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(lives)
def test_places_that_live_at_the_same_time_never_overlap(moments: list[list[tuple[Space, int, int, bool]]]) -> None:
    scratch, places = lived(moments)
    for a, b in combinations(places, 2):
        if a.born <= b.dies and b.born <= a.dies:
            assert not set(span(a)) & set(span(b))
    for place in places:
        assert len(span(place)) == place.size
        assert 0 <= span(place).start <= span(place).stop <= scratch.size


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(lives)
def test_slots_of_a_space_that_are_born_together_lie_side_by_side(moments: list[list[tuple[Space, int, int, bool]]]) -> None:
    scratch, _ = lived(moments)
    for family in scratch.born.values():
        assert all(span(a).stop == span(b).start for a, b in pairwise(family))


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(lives)
def test_scratch_is_never_larger_than_all_places_together(moments: list[list[tuple[Space, int, int, bool]]]) -> None:
    scratch, places = lived(moments)
    assert scratch.size <= sum(place.size for place in places)


def test_memory_is_given_again_when_its_slot_was_last_read() -> None:
    scratch = Scratch()
    for now in range(0, 100, 2):
        scratch.write(ARRIVED(now), 10, now)
        scratch.use(ARRIVED(now), now + 1)
    scratch.assign()
    assert scratch.size == 10


def test_what_is_read_while_another_arrives_is_not_overwritten() -> None:
    scratch = Scratch()
    first = scratch.write(ARRIVED(0), 10, now=0)
    scratch.use(ARRIVED(0), now=2)
    second = scratch.write(ARRIVED(1), 10, now=2)
    scratch.assign()
    assert (first.run, second.run) == (Run("scratch", 0, 10), Run("scratch", 10, 20))


def test_a_gap_is_filled_before_scratch_grows() -> None:
    scratch = Scratch()
    scratch.write(PARTIAL(0), 4, now=0)
    scratch.write(ARRIVED(0), 4, now=0)
    scratch.use(ARRIVED(0), now=9)
    small = scratch.write(PARTIAL(1), 3, now=5)
    large = scratch.write(PARTIAL(2), 5, now=6)
    scratch.assign()
    assert (small.run, large.run) == (Run("scratch", 0, 3), Run("scratch", 8, 13))


def test_a_slot_that_was_never_written_cannot_be_read() -> None:
    with pytest.raises(KeyError):
        Scratch().use(PARTIAL(0), now=1)
