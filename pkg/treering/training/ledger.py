"""The ledger: every communication of a training step, in messages, elements and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .mesh import Group
from .tensor import ITEMSIZES
from .volume import Volume, volume

PHASES = ("forward", "backward", "optimizer")


@dataclass(frozen=True)
class Message:
    """One communication, as each of its ranks issues it.

    Attributes
    ----------
    phase
        One of `PHASES`.
    operation
        The collective, or ``"send"`` to a neighbour along the axis.
    group, size
        Which ranks take part, and how many they are.
    label
        What is sent, by role (``"layer weights"``), so that equal messages of different layers are one entry.
    dtype, elements
        The payload S as nccl-tests counts it: of an all-gather everything received, of a reduce-scatter everything
        put in, of an all-reduce, broadcast or send the buffer, of an all-to-all one rank's send buffer.
    operator
        Of a reduction.
    shift
        Of a send: +1 to the next rank along the axis, -1 to the previous one.
    """

    phase: str
    operation: str
    group: Group
    size: int
    label: str
    dtype: str
    elements: int
    operator: str = "sum"
    shift: int = 0

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return ITEMSIZES[self.dtype]

    @property
    def payload(self) -> int:
        """Bytes of the payload S."""
        return self.elements * self.itemsize

    @property
    def role(self) -> tuple[str, ...]:
        """Phase, operation, axis, label and dtype: what messages of different layers and sizes may have in common."""
        return self.phase, self.operation, str(self.group), self.label, self.dtype

    @property
    def sent(self) -> Volume:
        """Bytes that its ranks send."""
        elements = volume(self.operation, self.elements, self.size)
        return Volume(elements.busiest * self.itemsize, elements.total * self.itemsize)


@dataclass
class Ledger:
    """How often one rank takes part in each message of a step, in the order of first use."""

    times: dict[Message, int] = field(default_factory=dict)

    def add(self, message: Message) -> None:
        """Enter one more message."""
        self.times[message] = self.times.get(message, 0) + 1

    def of_role(self, role: tuple[str, ...]) -> Ledger:
        """Return the entries of one role."""
        return Ledger({message: times for message, times in self.times.items() if message.role == role})

    def sent_bytes(self, axis: str | None = None, operation: str | None = None, phase: str | None = None,
                   label: str | None = None) -> int:
        """Bytes the rank sends in the messages that agree with all that is given (on the busiest rank of each group)."""
        return sum(times * message.sent.busiest for message, times in self.select(axis, operation, phase, label))

    def count(self, axis: str | None = None, operation: str | None = None, phase: str | None = None,
              label: str | None = None) -> int:
        """Return the number of messages that agree with all that is given."""
        return sum(times for _, times in self.select(axis, operation, phase, label))

    def select(self, axis: str | None = None, operation: str | None = None, phase: str | None = None,
               label: str | None = None) -> Iterator[tuple[Message, int]]:
        """Yield the messages, with their number, that agree with all that is given."""
        for message, times in self.times.items():
            facts = (str(message.group), message.operation, message.phase, message.label)
            if all(want in (None, has) for want, has in zip((axis, operation, phase, label), facts, strict=True)):
                yield message, times


@dataclass(frozen=True)
class RankClass:
    """Ranks with the same ledger: those of pipeline stages that hold the same kinds of units.

    Attributes
    ----------
    stages
        Positions along pp.
    ranks
        How many ranks the class has.
    parameters
        Elements of the weights of one rank's stage, its tensor-parallel part, before any sharding over data axes.
    ledger
        What one of the ranks sends.
    """

    stages: tuple[int, ...]
    ranks: int
    parameters: int
    ledger: Ledger


@dataclass(frozen=True)
class Row:
    """Messages of one role, of all layers, microbatches and stages.

    Attributes
    ----------
    phase, operation, axis, label, dtype
        As in `Message`.
    stages
        The pipeline stages whose ranks send it.
    times
        How often one rank takes part (a rank of the stage that sends the most).
    payloads
        The sizes S that occur, in bytes.
    sent, total
        Bytes sent by one such rank, and by all ranks together.
    """

    phase: str
    operation: str
    axis: str
    label: str
    dtype: str
    stages: tuple[int, ...]
    times: int
    payloads: tuple[int, ...]
    sent: int
    total: int

    @property
    def role(self) -> tuple[str, ...]:
        """What its messages have in common, as `Message.role` gives it."""
        return self.phase, self.operation, self.axis, self.label, self.dtype


@dataclass(frozen=True)
class StepLedger:
    """The ledgers of all ranks."""

    classes: tuple[RankClass, ...]

    def of_stage(self, stage: int) -> RankClass:
        """Return the class of a pipeline stage's ranks."""
        return next(one for one in self.classes if stage in one.stages)

    def sampled(self) -> StepLedger:
        """Return the ledger of a step in which every distinct message occurs once."""
        once = (replace(one, ledger=Ledger(dict.fromkeys(one.ledger.times, 1))) for one in self.classes)
        return StepLedger(tuple(once))

    def total_bytes(self, axis: str | None = None, operation: str | None = None, phase: str | None = None,
                    label: str | None = None) -> int:
        """Bytes that all ranks together send in the messages that agree with all that is given."""
        issued: dict[Message, int] = {}
        for one in self.classes:
            for message, times in one.ledger.select(axis, operation, phase, label):
                issued[message] = issued.get(message, 0) + times * one.ranks
        # A collective's bytes belong to its group, so each of its ranks, of whatever stage, issues 1/size of them.
        return sum(
            ranks * message.sent.total // (1 if message.operation == "send" else message.size)
            for message, ranks in issued.items()
        )

    def rows(self) -> list[Row]:
        """Return the ledger as a table: messages of the same role together, in the order of the phases."""
        found: dict[tuple[str, ...], list[RankClass]] = {}
        for one in self.classes:
            for message in one.ledger.times:
                members = found.setdefault(message.role, [])
                if one not in members:
                    members.append(one)
        rows = []
        for role, members in sorted(found.items(), key=lambda item: PHASES.index(item[0][0])):
            parts = [one.ledger.of_role(role) for one in members]
            busiest = max(parts, key=lambda part: part.sent_bytes())
            phase, operation, axis, label, dtype = role
            rows.append(Row(
                phase, operation, axis, label, dtype,
                stages=tuple(sorted(stage for one in members for stage in one.stages)),
                times=busiest.count(),
                payloads=tuple(sorted({message.payload for part in parts for message in part.times})),
                sent=busiest.sent_bytes(),
                total=self.total_bytes(axis, operation, phase, label),
            ))
        return rows
