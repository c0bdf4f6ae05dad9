"""A second, plain opinion on schedules, against which the verifier is tested.

It runs all ranks on expressions in text: what rank 2 contributes to block 5 is ``"(2:5)"``, and reducing puts two expressions
side by side in brackets. It knows nothing of trees, events or bindings, and cares for no speed.
"""

from __future__ import annotations

import re
from collections import defaultdict

from treering.core import Copy, Recv, Round, Schedule, Send, Slot


class Wrong(Exception):
    """The schedule does not compute its collective."""


def judge(schedule: Schedule) -> None:
    """Run a schedule with separate buffers and raise `Wrong` if anything about it is."""
    ranks = range(schedule.size)
    before = [schedule.collective.before(rank, schedule.case) for rank in ranks]
    memory = [{slot: expression(origins, slot) for slot, origins in state.items()} for state in before]
    given = [{slot for slot in state if slot.space == "in"} for state in before]
    rounds = [[r for r in schedule.program(rank) if r] for rank in ranks]
    at = [-1] * schedule.size
    sends: dict[tuple[int, int], list[list[str]]] = defaultdict(list)
    recvs: dict[tuple[int, int], list[Recv]] = defaultdict(list)
    posted: list[list[tuple[tuple[int, int], int]]] = [[] for _ in ranks]
    names: dict[tuple[int, int], list[Send]] = defaultdict(list)

    def enter(rank: int) -> None:
        at[rank] += 1
        posted[rank] = []
        if at[rank] == len(rounds[rank]):
            return
        round_ = rounds[rank][at[rank]]
        hazards(round_, given[rank])
        for send in round_.sends:
            require(send.peer in ranks and send.peer != rank and send.slots, "peer")
            pair = rank, send.peer
            posted[rank].append((pair, len(sends[pair])))
            sends[pair].append([held(memory[rank], slot) for slot in send.slots])
            names[pair].append(send)
        for recv in round_.recvs:
            require(recv.peer in ranks and recv.peer != rank and recv.slots, "peer")
            pair = recv.peer, rank
            posted[rank].append((pair, len(recvs[pair])))
            recvs[pair].append(recv)

    def leave(rank: int) -> None:
        for pair, k in posted[rank]:
            sent, expected = ([slot.block for slot in side[pair][k].slots] for side in (names, recvs))  # type: ignore[index]
            require(sent == expected, "blocks")
            if pair[1] == rank:
                memory[rank].update(zip(recvs[pair][k].slots, sends[pair][k]))
        for op in rounds[rank][at[rank]].local:
            require(op.into not in given[rank], "input")
            if isinstance(op, Copy):
                require(op.into.block == op.source.block, "names")
                memory[rank][op.into] = held(memory[rank], op.source)
            else:
                require(op.into.block == op.left.block == op.right.block, "names")
                both = f"({held(memory[rank], op.left)}{held(memory[rank], op.right)})"
                require(schedule.collective.repeats or len(set(leaves(both))) == len(leaves(both)), "twice")
                memory[rank][op.into] = both

    for rank in ranks:
        enter(rank)
    running = True
    while running:
        running = False
        for rank in ranks:
            if at[rank] < len(rounds[rank]) and all(k < min(len(sends[p]), len(recvs[p])) for p, k in posted[rank]):
                leave(rank)
                enter(rank)
                running = True
    require(all(at[rank] == len(rounds[rank]) for rank in ranks), "waits")
    check_results(schedule, memory)


def check_results(schedule: Schedule, memory: list[dict[Slot, str]]) -> None:
    same: dict[object, str] = {}
    for rank in range(schedule.size):
        for slot, origins in schedule.collective.after(rank, schedule.case).items():
            got = held(memory[rank], slot)
            wanted = leaves(expression(origins, slot))
            if schedule.collective.repeats:
                require(set(leaves(got)) == set(wanted), "result")
                continue
            require(sorted(leaves(got)) == sorted(wanted), "result")
            require(not schedule.in_order or leaves(got) == wanted, "order")
            require(same.setdefault((slot.block, origins), got) == got, "bits")


def hazards(round_: Round, given: set[Slot]) -> None:
    arriving = [slot for recv in round_.recvs for slot in recv.slots]
    sending = {slot for send in round_.sends for slot in send.slots}
    require(len(set(arriving)) == len(arriving) and not sending & set(arriving) and not given & set(arriving), "hazard")


def expression(origins: range, slot: Slot) -> str:
    return "".join(f"({rank}:{slot.block})" for rank in origins)


def leaves(text: str) -> list[str]:
    return re.findall(r"\((\d+:(?:\d+|\(\d+, \d+\)))\)", text)


def held(memory: dict[Slot, str], slot: Slot) -> str:
    require(slot in memory, f"{slot} is empty")
    return memory[slot]


def require(condition: object, what: str) -> None:
    if not condition:
        raise Wrong(what)
