"""Linear forms: every block goes straight from where it is to where it belongs. The baseline of every comparison."""

from __future__ import annotations

from collections.abc import Iterator

from treering.core import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    GATHER,
    IN,
    OUT,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    Block,
    Copy,
    Recv,
    Reduce,
    Round,
    Send,
    Slot,
    Space,
    algorithm,
    reverse,
)


def others(rank: int, size: int) -> list[tuple[int, int]]:
    """Whom to send to beside whom to receive from, so that in no place of the list two ranks send to the same."""
    return [((rank + i) % size, (rank - i) % size) for i in range(1, size)]


def contribution(sender: int, rank: int, block: Block) -> Slot:
    """Where a rank finds a sender's contribution: its own in its input, another's where it arrives."""
    return IN(block) if sender == rank else Space(f"from {sender}")(block)


def in_rank_order(rank: int, size: int, block: Block) -> Iterator[Reduce]:
    """Reduce the contributions of all ranks to a block, from rank 0 upwards."""
    left = contribution(0, rank, block)
    for sender in range(1, size):
        yield Reduce(OUT(block), left, contribution(sender, rank, block))
        left = OUT(block)


@algorithm(BROADCAST, "linear", family="direct", source="textbook")
def broadcast(rank: int, size: int, root: int) -> Iterator[Round]:
    """The root sends to everyone.

    Rounds: ``size - 1``. Sent: ``size - 1``.
    """
    if rank == root:
        yield Round(*(Send(to, OUT(0)) for to, _ in others(rank, size)))
    else:
        yield Round(Recv(root, OUT(0)))


@algorithm(SCATTER, "linear", family="direct", source="textbook")
def scatter(rank: int, size: int, root: int) -> Iterator[Round]:
    """The root sends every rank its block.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    if rank == root:
        yield Round(*(Send(to, IN(to)) for to, _ in others(rank, size)), Copy(OUT(rank), IN(rank)))
    else:
        yield Round(Recv(root, OUT(rank)))


@algorithm(GATHER, "linear", family="direct", source="textbook")
def gather(rank: int, size: int, root: int) -> Iterator[Round]:
    """Every rank sends the root its block: the scatter, backwards.

    Rounds: ``size - 1``. Sent: ``1 / size``.
    """
    yield from reverse(scatter(rank, size, root))


@algorithm(REDUCE, "linear", family="direct", in_order=True, source="textbook")
def reduce(rank: int, size: int, root: int) -> Iterator[Round]:
    """The root takes everyone's vector, one after the other in rank order.

    Rounds: ``size - 1``. Sent: ``1``.
    """
    if rank != root:
        yield Round(Send(root, IN(0)))
        return
    sums = {op.right: op for op in in_rank_order(rank, size, 0)}
    for sender in range(size):
        value = contribution(sender, rank, 0)
        arrive = [Recv(sender, value)] if sender != rank else []
        add = [sums[value]] if value in sums else []
        yield Round(*arrive, *add)


@algorithm(ALL_GATHER, "linear", family="direct", source="textbook")
def all_gather(rank: int, size: int) -> Iterator[Round]:
    """Everyone sends its block to everyone.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    messages = [op for to, back in others(rank, size) for op in (Send(to, IN(rank)), Recv(back, OUT(back)))]
    yield Round(*messages, Copy(OUT(rank), IN(rank)))


@algorithm(
    ALL_REDUCE, "linear", family="direct", in_order=True, source="Open MPI coll/base, allgather_reduce; here in rank order")
def all_reduce(rank: int, size: int) -> Iterator[Round]:
    """Everyone sends its whole vector to everyone, and reduces all of them in rank order.

    Rounds: ``size - 1``. Sent: ``size - 1``.
    """
    messages = [op for to, back in others(rank, size) for op in (Send(to, IN(0)), Recv(back, contribution(back, rank, 0)))]
    yield Round(*messages, *in_rank_order(rank, size, 0))


@algorithm(REDUCE_SCATTER, "linear", family="direct", in_order=True, source="textbook")
def reduce_scatter(rank: int, size: int) -> Iterator[Round]:
    """Everyone sends each rank its contribution to that rank's block, which is reduced there in rank order.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    messages = [
        op for to, back in others(rank, size) for op in (Send(to, IN(to)), Recv(back, contribution(back, rank, rank)))]
    yield Round(*messages, *in_rank_order(rank, size, rank))


@algorithm(ALL_TO_ALL, "linear", family="direct", source="textbook")
def all_to_all(rank: int, size: int) -> Iterator[Round]:
    """Everyone sends everyone its block, all at once.

    Rounds: ``size - 1``. Sent: ``(size - 1) / size``.
    """
    messages = [op for to, back in others(rank, size) for op in (Send(to, IN((rank, to))), Recv(back, OUT((back, rank))))]
    yield Round(*messages, Copy(OUT((rank, rank)), IN((rank, rank))))
