"""The messages of a step, really sent: as many bytes as the ledger says, on any number of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from treering.running.comm import Comm
from treering.training.config import config_of
from treering.training.job import Job, Settings
from treering.training.ledger import Message
from treering.training.mesh import Mesh
from treering.training.model import build
from treering.training.step import trace
from treering.training.tensor import Tensor
from treering.training.traffic import Traffic, run_traffic

if TYPE_CHECKING:
    from mpi4py import MPI

pytestmark = pytest.mark.mpi

CONFIG = {
    "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8, "head_dim": 16,
    "intermediate_size": 176, "vocab_size": 1001, "max_position_embeddings": 32, "tie_word_embeddings": True,
}
LAYOUTS = {
    1: [{}],
    2: [{"dp": 2}, {"fsdp": 2}, {"tp": 2}, {"pp": 2}],
    3: [{"dp": 3}, {"fsdp": 3}],
    4: [{"dp": 2, "tp": 2}, {"fsdp": 2, "tp": 2}, {"dp": 2, "fsdp": 2}, {"pp": 4}, {"pp": 2, "tp": 2}],
    5: [{"dp": 5}, {"fsdp": 5}],
    7: [{"dp": 7}, {"fsdp": 7}],
    8: [{"dp": 2, "tp": 2, "pp": 2}, {"fsdp": 2, "tp": 2, "pp": 2}, {"dp": 2, "pp": 4}],
}


def jobs(size: int, **settings: object) -> list[Job]:
    model = build(config_of(CONFIG))
    return [Job(model, Mesh.of(layout), Settings(**settings)) for layout in LAYOUTS[size]]  # type: ignore[arg-type]


@pytest.mark.parametrize(("dtype", "sample"), [("bf16", False), ("bf16", True), ("fp32", False)])
def test_the_bytes_sent_are_the_ledgers(comm: MPI.Intracomm, dtype: str, sample: bool) -> None:
    for job in jobs(comm.size, dtype=dtype, microbatches=2):
        ledger = trace(job)
        outcome = run_traffic(job, comm, ledger, Comm, sample=sample, iters=2)
        assert outcome.traced_bytes == outcome.ledger_bytes
        assert outcome.ledger_bytes == 2 * (ledger.sampled() if sample else ledger).total_bytes()
        assert set(outcome.times) == {row.role for row in ledger.rows()}
        assert all((times.mpi is None) == (role[1] == "send") for role, times in outcome.times.items())


def test_fewer_microbatches_than_stages_do_not_hang(comm: MPI.Intracomm) -> None:
    for job in jobs(comm.size, microbatches=1):
        if job.mesh.sizes["pp"] == 1:
            continue
        outcome = run_traffic(job, comm, trace(job), Comm)
        assert outcome.traced_bytes == outcome.ledger_bytes


def test_messages_beyond_the_memory_are_cut_and_send_the_same(comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treering.training.traffic.MEMORY_BYTES", 3000 * comm.size)
    for job in jobs(comm.size, dtype="bf16"):
        outcome = run_traffic(job, comm, trace(job), Comm)
        assert outcome.cut == (comm.size > 1)
        assert outcome.traced_bytes == outcome.ledger_bytes


class Doubled(Traffic):
    """Sends every message twice."""

    def move(self, message: Message, tensor: Tensor, result: Tensor) -> Tensor:
        super().move(message, tensor, result)
        return super().move(message, tensor, result)

    def take(self, message: Message, result: Tensor) -> Tensor:
        super().take(message, result)
        return super().take(message, result)


def test_a_run_that_sends_too_much_is_noticed(comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treering.training.traffic.Traffic", Doubled)
    job = jobs(comm.size)[0]
    outcome = run_traffic(job, comm, trace(job), Comm)
    assert outcome.traced_bytes == 2 * outcome.ledger_bytes
