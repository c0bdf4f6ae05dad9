"""Running in place: some slots of a rank share memory, and still every read must find what it finds with separate buffers.

Then both forms compute the same. So only reads need a look, and only of these slots: each rank alone, whatever the values.
"""

from __future__ import annotations

from itertools import count

from ..core.algorithm import Schedule
from ..core.binding import Binding, bind
from ..core.schedule import Copy, Round, Slot, reads
from .match import Flaw


def check_in_place(schedule: Schedule, rank: int) -> None:
    """Check that running in place makes no difference on one rank.

    Raises
    ------
    Flaw
        If what an operation reads, or a result, is overwritten by what shares its memory.
    """
    binding = bind(schedule.collective, schedule.case, rank, schedule.program(rank), in_place=True)
    if not binding.cells:
        return
    memory = Memory(binding)
    for index, round_ in enumerate(schedule.rounds(rank)):
        if fault := memory.run(round_):
            raise Flaw(schedule, f"{fault} (in place)", rank, index)
    for slot in schedule.collective.after(rank, schedule.case):
        if slot in memory.cells and memory.lost(slot):
            raise Flaw(schedule, f"{slot} is overwritten by what shares its memory (in place)", rank)


class Memory:
    """The slots of one rank that share memory. A number stands for what each holds, and another for what its cell holds."""

    def __init__(self, binding: Binding) -> None:
        self.cells = {cell: cell for cell in binding.cells.values()} | dict(binding.cells)
        self.new = count()
        self.separate = dict(zip(binding.given, self.new))
        saved = {copy.into: copy.source for copy in binding.before}
        cells = {slot: binding.cell(slot) for slot in binding.given}
        self.shared = {saved.get(cell, cell): self.separate[slot] for slot, cell in cells.items()}
        for copy in binding.before:
            self.shared[copy.into] = self.shared[copy.source]

    def run(self, round_: Round) -> str | None:
        """Run a round and return its fault, if it has one."""
        cells = self.cells
        busy: set[Slot] = set()
        for send in round_.sends:
            for slot in send.slots:
                if slot in cells:
                    if self.lost(slot):
                        return f"sends {slot}, which is overwritten by what shares its memory"
                    busy.add(cells[slot])
        for recv in round_.recvs:
            for slot in recv.slots:
                if slot in cells:
                    if cells[slot] in busy:
                        return f"receives into {slot} while its memory is being sent"
                    self.write(slot, next(self.new))
        for op in round_.local:
            for slot in reads(op):
                if slot in cells and self.lost(slot):
                    return f"{op}: {slot} is overwritten by what shares its memory"
            if op.into in cells:
                copied = self.separate.get(op.source) if isinstance(op, Copy) else None
                self.write(op.into, next(self.new) if copied is None else copied)
        return None

    def write(self, slot: Slot, what: int) -> None:
        self.separate[slot] = self.shared[self.cells[slot]] = what

    def lost(self, slot: Slot) -> bool:
        """Whether the cell of a slot that shares memory holds something else."""
        return self.shared.get(self.cells[slot]) != self.separate.get(slot)
