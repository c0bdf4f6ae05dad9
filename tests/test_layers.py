"""Placements are checked: a program that forgets or doubles a collective fails when it is walked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from treering.training import operators as op
from treering.training.collectives import PlacementError, Tracer
from treering.training.config import config_of
from treering.training.job import Job
from treering.training.mesh import Group, Mesh
from treering.training.model import build
from treering.training.placements import Centralized, Partial, Partitioned, Placement, Replicated
from treering.training.step import trace
from treering.training.strategies.tp import TensorParallel
from treering.training.tape import Tape
from treering.training.tensor import Tensor

TP = Group(("tp",))
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 176,
    "vocab_size": 1000, "max_position_embeddings": 8,
}


def tensor(shape: tuple[int, ...], placement: Placement | None = None) -> Tensor:
    whole = Tensor(shape, "bf16")
    return whole.placed(("tp",), placement or Replicated())


def tracer() -> Tracer:
    return Tracer(Mesh.of({"tp": 4}))


def test_collectives_are_transitions_between_placements() -> None:
    comm = tracer()
    whole = comm.all_reduce(TP, tensor((8, 4), Partial()), "")
    assert (whole.shape, whole.on("tp")) == ((8, 4), Replicated())
    part = comm.reduce_scatter(TP, tensor((8, 4), Partial()), "", dim=0)
    assert (part.shape, part.on("tp")) == ((2, 4), Partitioned(0))
    assert comm.all_gather(TP, part, "").shape == (8, 4)
    turned = comm.all_to_all(TP, part, "", source=0, target=1)
    assert (turned.shape, turned.on("tp")) == ((8, 1), Partitioned(1))
    assert comm.broadcast(TP, tensor((8, 4), Centralized(0)), "").on("tp") == Replicated()
    assert [(m.operation, m.elements) for m in comm.ledger.times] == [
        ("all-reduce", 32), ("reduce-scatter", 32), ("all-gather", 32), ("all-to-all", 8), ("broadcast", 32)]


@pytest.mark.parametrize("placement", [Replicated(), Partitioned(0), Centralized(0)])
def test_only_partial_sums_are_reduced(placement: Placement) -> None:
    with pytest.raises(PlacementError, match="cannot reduce over tp"):
        tracer().all_reduce(TP, tensor((8, 4), placement), "")


def test_only_what_is_partitioned_so_is_gathered() -> None:
    with pytest.raises(PlacementError, match=r"Partitioned\(dim=0\) is needed"):
        tracer().all_gather(TP, tensor((8, 4), Partitioned(1)), "")
    with pytest.raises(PlacementError, match="cannot be cut into 4 equal parts"):
        tracer().reduce_scatter(TP, tensor((6, 4), Partial()), "")


def test_column_then_row_needs_one_reduction() -> None:
    tape = Tape()
    wide = tape.apply(op.LINEAR, tensor((8, 64)), tensor((16, 64), Partitioned(0)))
    assert wide.on("tp") == Partitioned(1)
    narrow = tape.apply(op.LINEAR, wide, tensor((64, 16), Partitioned(1)))
    assert (narrow.shape, narrow.on("tp")) == ((8, 64), Partial())


@pytest.mark.parametrize("use", [
    lambda tape, y: tape.apply(op.ADD, y, tensor((8, 64))),
    lambda tape, y: tape.apply(op.NORM, y, tensor((64,))),
    lambda tape, y: tape.apply(op.BIAS, y, tensor((64,))),
    lambda tape, y: tape.apply(op.LINEAR, y, tensor((64, 16), Partitioned(1))),
    lambda tape, y: tape.apply(op.LINEAR, y, tensor((64, 65))),
])
def test_a_term_of_a_sum_is_not_taken_for_the_sum(use: object) -> None:
    with pytest.raises(PlacementError):
        use(Tape(), tensor((8, 64), Partial()))  # type: ignore[operator]


class Forgetful(TensorParallel):
    """Forgets the all-reduce of the input's gradient."""

    def enter(self, tape: Tape, x: Tensor, label: str) -> Tensor:
        return tape.record((x,), replace(x), lambda gradient: [gradient])


class Hasty(TensorParallel):
    """Forgets the all-reduce of the output."""

    def leave(self, tape: Tape, y: Tensor, label: str) -> Tensor:
        return tape.record((y,), replace(y), lambda gradient: [gradient])


@pytest.mark.parametrize("fault", [Forgetful, Hasty])
@pytest.mark.parametrize("family", [
    {}, {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
])
def test_a_strategy_that_forgets_a_collective_is_caught(monkeypatch: pytest.MonkeyPatch, fault: type,
                                                       family: dict[str, object]) -> None:
    job = Job(build(config_of(CONFIG | family)), Mesh.of({"tp": 4}))
    trace(job)
    monkeypatch.setattr("treering.training.step.TensorParallel", fault)
    with pytest.raises(PlacementError):
        trace(job)


def test_gradients_arrive_when_their_last_term_is_there() -> None:
    tape, arrived = Tape(), []
    weight = tape.watch(tensor((64, 64)), lambda gradient: arrived.append("weight"))
    x = tape.watch(tensor((8, 64)), lambda gradient: arrived.append("x"))
    y = tape.apply(op.LINEAR, x, weight)
    tape.mark(lambda: arrived.append("mark"))
    z = tape.apply(op.LINEAR, y, weight)
    tape.backward(z, z)
    assert arrived == ["mark", "x", "weight"]
