"""Scan and exscan: every rank gets the reduction over itself and those before it, or only over those before it.

Both keep rank order, whatever the algorithm: an interval of ranks is only ever reduced with the one beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import EXSCAN, IN, OUT, SCAN, Copy, Recv, Reduce, Round, Send, Space, algorithm

from .linear import contribution
from .ring import SEGMENTS, segments_of

PARTIAL, ARRIVED = Space("partial"), Space("arrived")
MPICH = "MPICH and Open MPI, recursive doubling"
TRAFF = "Träff, arXiv 2507.04785, 2025"


@algorithm(
    SCAN, "chain", family="ring", in_order=True, blocks=segments_of, parameters=[SEGMENTS],
    source="Open MPI coll/base, linear; here in segments")
def scan(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Take the sum of all before from the left, add the own, and hand it on to the right, in segments.

    Rounds: ``size - 2 + segments``. Sent: ``1``.
    """
    behind = 1 if rank else 0
    for i in range(segments + behind):
        send = [Send(rank + 1, (OUT if rank else IN)(i - behind))] if rank < size - 1 and i >= behind else []
        take = [Recv(rank - 1, ARRIVED(i))] if rank and i < segments else []
        add = [Reduce(OUT(i), ARRIVED(i), IN(i))] if take else []
        keep = [Copy(OUT(i), IN(i))] if not rank else []
        yield Round(*send, *take, *add, *keep)


@algorithm(
    EXSCAN, "chain", family="ring", in_order=True, blocks=segments_of, parameters=[SEGMENTS],
    source="Open MPI coll/base, linear; here in segments")
def exscan(rank: int, size: int, segments: int) -> Iterator[Round]:
    """Keep the sum of all before that comes from the left, and hand it on with the own added, in segments.

    Rounds: ``size - 2 + segments``. Sent: ``1``.
    """
    behind = 1 if rank else 0
    last = rank == size - 1
    for i in range(segments + behind):
        send = [Send(rank + 1, (PARTIAL if rank else IN)(i - behind))] if not last and i >= behind else []
        take = [Recv(rank - 1, OUT(i))] if rank and i < segments else []
        add = [Reduce(PARTIAL(i), OUT(i), IN(i))] if take and not last else []
        yield Round(*send, *take, *add)


@algorithm(SCAN, "linear", family="direct", in_order=True, source="textbook")
def scan_linear(rank: int, size: int) -> Iterator[Round]:
    """Everyone sends its vector to all after it, and reduces what comes from all before it in rank order.

    Rounds: ``size - 1``. Sent: ``size - 1``.
    """
    yield from everyone_to_those_after(rank, size, range(rank + 1))


@algorithm(EXSCAN, "linear", family="direct", in_order=True, source="textbook")
def exscan_linear(rank: int, size: int) -> Iterator[Round]:
    """Everyone sends its vector to all after it, and reduces what comes from all before it in rank order.

    Rounds: ``size - 1``. Sent: ``size - 1``.
    """
    yield from everyone_to_those_after(rank, size, range(rank))


def everyone_to_those_after(rank: int, size: int, wanted: range) -> Iterator[Round]:
    """Send to all after, nearest first, and reduce some contributions in rank order."""
    sends = [Send(later, IN(0)) for later in range(rank + 1, size)]
    takes = [Recv(earlier, contribution(earlier, rank, 0)) for earlier in reversed(range(rank))]
    slots = [contribution(of, rank, 0) for of in wanted]
    keep = [Copy(OUT(0), slots[0])] if len(slots) == 1 else []
    yield Round(*sends, *takes, *keep, *(Reduce(OUT(0), OUT(0) if i else slots[0], s) for i, s in enumerate(slots[1:])))


@algorithm(SCAN, "doubling", family="halving", in_order=True, source="Hillis & Steele, CACM 29(12), 1986; Kogge & Stone, 1973")
def scan_doubling(rank: int, size: int) -> Iterator[Round]:
    """Send what is summed up so far to the rank 1, 2, 4, … to the right.

    Rounds: ``ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    total, distance = IN(0), 1
    if rank == 0:
        yield Round(Copy(OUT(0), IN(0)))
    while distance < size:
        send = [Send(rank + distance, total)] if rank + distance < size else []
        take = [Recv(rank - distance, ARRIVED(0))] if rank >= distance else []
        yield Round(*send, *take, *(Reduce(OUT(0), ARRIVED(0), total) for _ in take))
        total = OUT(0) if rank else IN(0)
        distance *= 2


@algorithm(EXSCAN, "doubling", family="halving", in_order=True, source=TRAFF)
def exscan_doubling(rank: int, size: int) -> Iterator[Round]:
    """Send what is summed up so far to the rank 1, 2, 3, 6, 12, … to the right; only in the second round with the own added.

    Rounds: ``ceil_log2((4 * size - 2) // 3)``. Sent: ``ceil_log2((4 * size - 2) // 3)``.
    """
    sent, distance = IN(0), 1
    while distance < size:
        send = [Send(rank + distance, sent)] if rank + distance < size and (rank or distance < 3) else []
        into = OUT(0) if distance == 1 else ARRIVED(0)
        take = [Recv(rank - distance, into)] if rank >= distance + (distance > 2) else []
        add = [Reduce(OUT(0), ARRIVED(0), OUT(0))] if take and distance > 1 else []
        more = [Reduce(PARTIAL(0), OUT(0), IN(0))] if rank and distance == 1 and rank + 2 < size else []
        yield Round(*send, *take, *add, *more)
        sent = (PARTIAL(0) if rank else IN(0)) if distance == 1 else OUT(0)
        distance = distance + 1 if distance < 3 else 2 * distance


def swap(rank: int, size: int, inclusive: bool) -> Iterator[Round]:
    """Swap the sums of groups of 1, 2, 4, … ranks with the group beside; those from below are put before the result."""
    bits = (size - 1).bit_length()

    def passes_on(one: int, k: int) -> bool:
        """Whether the sum of the group that comes about in round k will be sent on, maybe by way of ranks below."""
        kept = one & (2 << k) - 1
        return any(not one >> j & 1 and (one >> j << j | kept) + (1 << j) < size for j in range(k + 1, bits))

    total, result = IN, IN if inclusive else None
    for k in range(bits):
        peer, below = rank ^ 1 << k, rank >> k & 1
        if peer >= size:
            continue
        send = [Send(peer, total(0))] if not below or passes_on(peer, k) else []
        take = [Recv(peer, ARRIVED(0))] if below or passes_on(rank, k) else []
        add: list[Copy | Reduce] = []
        if below:
            add = [Reduce(OUT(0), ARRIVED(0), result(0)) if result else Copy(OUT(0), ARRIVED(0))]
            result = OUT
        if passes_on(rank, k):
            add.append(Reduce(PARTIAL(0), *((ARRIVED(0), total(0)) if below else (total(0), ARRIVED(0)))))
            total = PARTIAL
        yield Round(*send, *take, *add)
    if result is IN:
        yield Round(Copy(OUT(0), IN(0)))


@algorithm(SCAN, "exchange", family="halving", in_order=True, source=MPICH)
def scan_exchange(rank: int, size: int) -> Iterator[Round]:
    """Swap the sums of groups of 1, 2, 4, … ranks with the group beside, and add those from below.

    Rounds: ``ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    yield from swap(rank, size, inclusive=True)


@algorithm(EXSCAN, "exchange", family="halving", in_order=True, source=MPICH)
def exscan_exchange(rank: int, size: int) -> Iterator[Round]:
    """Swap the sums of groups of 1, 2, 4, … ranks with the group beside, and add up those from below.

    Rounds: ``ceil_log2(size)``. Sent: ``ceil_log2(size)``.
    """
    yield from swap(rank, size, inclusive=False)


@algorithm(SCAN, "binomial", family="tree", in_order=True, source="Brent & Kung, IEEE TC C-31(3), 1982; Blelloch, 1990")
def scan_binomial(rank: int, size: int) -> Iterator[Round]:
    """Add up runs of 2, 4, 8, … ranks at the last of each, then hand sums from the end of runs to the middle of the next.

    Rounds: at most ``2 * ceil_log2(size) - 1``. Sent: ``floor_log2(size)``.
    """
    run = (rank + 1) & -(rank + 1)
    first = run == rank + 1  # the run begins at rank 0
    distances = [1 << k for k in range(run.bit_length() - 1)]
    total, source = OUT if first else PARTIAL, IN
    for distance in distances:
        yield Round(Recv(rank - distance, ARRIVED(0)), Reduce(total(0), ARRIVED(0), source(0)), phase="up")
        source = total
    if rank + run < size:
        yield Round(Send(rank + run, source(0)), phase="up")
    if not first:
        yield Round(Recv(rank - run, ARRIVED(0)), Reduce(OUT(0), ARRIVED(0), source(0)), phase="down")
    elif source is IN:
        yield Round(Copy(OUT(0), IN(0)))
    for distance in reversed(distances):
        if rank + distance < size:
            yield Round(Send(rank + distance, OUT(0)), phase="down")


@algorithm(EXSCAN, "binomial", family="tree", in_order=True, source="Blelloch, Prefix sums and their applications, 1990")
def exscan_binomial(rank: int, size: int) -> Iterator[Round]:
    """Add up runs of 2, 4, 8, … ranks at the last of each, then hand sums from the end of runs to the middle of the next.

    Rounds: at most ``2 * ceil_log2(size) - 1``. Sent: ``floor_log2(size)``.
    """
    run = (rank + 1) & -(rank + 1)
    first = run == rank + 1  # the run begins at rank 0
    distances = [1 << k for k in range(run.bit_length() - 1)]
    with_own = Round(Reduce(PARTIAL(0), OUT(0), IN(0)))
    for distance in distances:
        add = [Reduce(OUT(0), ARRIVED(0), OUT(0))] if distance > 1 else []
        yield Round(Recv(rank - distance, (ARRIVED if add else OUT)(0)), *add, phase="up")
    if rank + run < size:
        yield with_own if distances else Round()
        yield Round(Send(rank + run, (PARTIAL if distances else IN)(0)), phase="up")
    if not first:
        add = [Reduce(OUT(0), ARRIVED(0), OUT(0))] if distances else []
        yield Round(Recv(rank - run, (ARRIVED if add else OUT)(0)), *add, phase="down")
    below = [distance for distance in reversed(distances) if rank + distance < size]
    if below and not (first and rank + run < size):
        yield with_own
    for distance in below:
        yield Round(Send(rank + distance, PARTIAL(0)), phase="down")
