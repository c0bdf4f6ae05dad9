"""Call counts and bytes of every strategy, against what the frameworks themselves send."""

from __future__ import annotations

from pathlib import Path

import pytest

from treering.training.config import config_of
from treering.training.job import Job, Settings
from treering.training.ledger import StepLedger
from treering.training.mesh import Mesh
from treering.training.model import Model, build, read_model
from treering.training.step import trace
from treering.training.strategies.pp import one_forward_one_backward

EXAMPLES = Path(__file__).parents[1] / "examples"
TOY = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 176,
    "vocab_size": 1000, "max_position_embeddings": 8,
}


def toy(**changes: object) -> Model:
    return build(config_of(TOY | changes))


def traced(model: Model, layout: dict[str, int], **settings: object) -> StepLedger:
    return trace(Job(model, Mesh.of(layout), Settings(**settings)))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def llama() -> Model:
    return read_model(EXAMPLES / "llama-3-8b.json")


# --- tensor parallelism ------------------------------------------------------------------------------------------------

def test_tp_all_reduces_twice_a_layer_forward_and_twice_backward(llama: Model) -> None:
    ledger = traced(llama, {"tp": 4}).of_stage(0).ledger
    layers = [message for message in ledger.times if message.label.startswith(("attention", "mlp"))]
    assert [(message.phase, ledger.times[message]) for message in layers] == [
        ("forward", 32), ("forward", 32), ("backward", 32), ("backward", 32)]
    assert sum(message.sent.busiest for message in layers) == 402_653_184
    assert {message.sent.busiest for message in layers} == {100_663_296}


def test_tp_embedding_reduces_forward_and_the_head_backward(llama: Model) -> None:
    ledger = traced(llama, {"tp": 4}).of_stage(0).ledger
    assert ledger.count(label="embedding output", phase="forward") == ledger.count(label="embedding output") == 1
    assert ledger.count(label="head input gradient", phase="backward") == ledger.count(label="head input gradient") == 1


def test_cross_entropy_reduces_three_fp32_numbers_a_token(llama: Model) -> None:
    ledger = traced(llama, {"tp": 4}, micro_batch=2).of_stage(0).ledger
    found = [message for message in ledger.times if message.dtype == "fp32" and message.group.axes == ("tp",)]
    found = [message for message in found if message.phase == "forward"]
    assert [(message.operator, message.elements) for message in found] == [("max", 16384), ("sum", 16384), ("sum", 16384)]


def test_a_block_half_of_c51() -> None:
    ledger = traced(toy(), {"tp": 4}, seq=8).of_stage(0).ledger
    message = next(message for message in ledger.times if message.label == "attention output")
    assert (message.payload, message.sent.busiest) == (1024, 1536)


def test_norms_on_hidden_states_need_no_sum_but_norms_on_heads_do() -> None:
    assert traced(toy(), {"tp": 4}).of_stage(0).ledger.count(label="replicated-weight gradients") == 0
    ledger = traced(toy(model_type="qwen3", head_dim=16), {"tp": 4}).of_stage(0).ledger
    (message, times), = ledger.select(label="replicated-weight gradients")
    assert (message.elements, times, message.phase) == (2 * 2 * 16, 1, "optimizer")


def test_routers_are_summed_over_tp() -> None:
    mixtral = toy(model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
    (message, _), = traced(mixtral, {"tp": 4}).of_stage(0).ledger.select(label="replicated-weight gradients")
    assert message.elements == 2 * 512


def test_norm_weights_are_not_divided_by_tp() -> None:
    whole, cut = (traced(toy(), {"tp": tp}).of_stage(0).parameters for tp in (1, 4))
    norms = 5 * 64
    assert whole == 228_672
    assert cut == (228_672 - norms) // 4 + norms


# --- data parallelism --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("dtype", "buckets"), [("bf16", 162), ("fp32", 194)])
def test_ddp_buckets_of_llama(llama: Model, dtype: str, buckets: int) -> None:
    ledger = traced(llama, {"dp": 2}, dtype=dtype).of_stage(0).ledger
    assert ledger.count(operation="all-reduce") == buckets
    assert sum(times * message.elements for message, times in ledger.times.items()) == llama.parameter_count


def test_ddp_reduces_once_whatever_the_number_of_microbatches() -> None:
    one, four = (traced(toy(), {"dp": 4}, microbatches=m).of_stage(0).ledger.times for m in (1, 4))
    assert one == four


# --- fully sharded -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("microbatches", [1, 4])
@pytest.mark.parametrize(("reshard", "backward"), [(True, 32), (False, 0)])
def test_fsdp2_counts(llama: Model, microbatches: int, reshard: bool, backward: int) -> None:
    ledger = traced(llama, {"fsdp": 4}, microbatches=microbatches, reshard=reshard).of_stage(0).ledger
    assert ledger.count(operation="all-gather", phase="forward") == 33 * microbatches
    assert ledger.count(operation="all-gather", phase="backward") == backward * microbatches
    assert ledger.count(operation="reduce-scatter", phase="backward") == 33 * microbatches


def test_c49_three_units() -> None:
    ledger = traced(toy(), {"fsdp": 4}).of_stage(0).ledger
    assert [ledger.count(operation="all-gather", phase=phase) for phase in ("forward", "backward")] == [3, 2]
    assert ledger.count(operation="reduce-scatter") == 3


def test_every_pass_of_fsdp_moves_all_parameters_once() -> None:
    ledger = traced(toy(), {"fsdp": 4}).of_stage(0).ledger
    for operation, phase in (("all-gather", "forward"), ("reduce-scatter", "backward")):
        moved = sum(times * message.elements for message, times in ledger.select(operation=operation, phase=phase))
        assert moved == 228_672


def test_fsdp_pads_dim_0() -> None:
    ledger = traced(toy(vocab_size=1001), {"fsdp": 4}).of_stage(0).ledger
    (message, _), = ledger.select(label="root weights")
    assert message.elements == 2 * 1004 * 64 + 64


def test_fsdp_gathers_in_the_weights_dtype_and_reduces_in_the_gradients() -> None:
    ledger = traced(toy(), {"fsdp": 4}, grad_dtype="fp32").of_stage(0).ledger
    assert {message.dtype for message, _ in ledger.select(operation="all-gather")} == {"bf16"}
    assert {message.dtype for message, _ in ledger.select(operation="reduce-scatter")} == {"fp32"}


def test_hsdp_all_reduces_the_shards_in_the_last_microbatch_only() -> None:
    ledger = traced(toy(), {"dp": 2, "fsdp": 4}, microbatches=4).of_stage(0).ledger
    assert ledger.count(operation="reduce-scatter") == 12
    assert ledger.count(axis="dp") == 3
    assert sum(times * message.elements for message, times in ledger.select(axis="dp")) == 228_672 // 4


def test_fsdp_with_a_pipeline_gathers_and_reduces_once_a_step() -> None:
    ledger = traced(toy(), {"fsdp": 2, "pp": 2}, microbatches=4).of_stage(0).ledger
    assert ledger.count(operation="all-gather") == ledger.count(operation="reduce-scatter") == 2


# --- pipelines ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("microbatches", [1, 2, 3, 8])
def test_pp_messages(stages: int, microbatches: int) -> None:
    step = traced(toy(num_hidden_layers=24), {"pp": stages}, microbatches=microbatches)
    sends = [step.of_stage(stage).ledger.count(operation="send") for stage in range(stages)]
    assert sum(sends) == 2 * microbatches * (stages - 1)


def test_sends_of_each_stage() -> None:
    step = traced(toy(num_hidden_layers=4), {"pp": 4}, microbatches=8)
    assert [step.of_stage(stage).ledger.count(operation="send") for stage in range(4)] == [8, 16, 16, 8]


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("microbatches", [1, 3, 4, 9])
def test_1f1b_does_everything_once_and_never_holds_more_than_its_depth(stages: int, microbatches: int) -> None:
    for stage in range(stages):
        held, most = 0, 0
        work = list(one_forward_one_backward(stage, stages, microbatches))
        assert sorted(work) == sorted((kind, i) for kind in ("forward", "backward") for i in range(microbatches))
        for kind, i in work:
            assert kind == "forward" or ("forward", i) in work[: work.index(("backward", i))]
            held += 1 if kind == "forward" else -1
            most = max(most, held)
        assert most == min(stages - stage, microbatches)


def test_1f1b_does_not_deadlock_with_buffered_sends() -> None:
    """Walk all stages, each stopping at a receive until its message is there."""
    stages, microbatches = 4, 3
    work = [list(one_forward_one_backward(stage, stages, microbatches)) for stage in range(stages)]
    done: set[tuple[int, str, int]] = set()
    while any(work):
        ready = [stage for stage in range(stages) if work[stage] and _arrived(stage, *work[stage][0], stages, done)]
        assert ready, "deadlock"
        for stage in ready:
            done.add((stage, *work[stage].pop(0)))


def _arrived(stage: int, kind: str, i: int, stages: int, done: set[tuple[int, str, int]]) -> bool:
    if kind == "forward":
        return stage == 0 or (stage - 1, "forward", i) in done
    return stage == stages - 1 or (stage + 1, "backward", i) in done


# --- the end of the step -----------------------------------------------------------------------------------------------

def test_a_tied_embedding_is_summed_between_the_ends_of_a_pipeline() -> None:
    tied = toy(tie_word_embeddings=True)
    step = traced(tied, {"pp": 2, "tp": 4})
    for stage in (0, 1):
        (message, times), = step.of_stage(stage).ledger.select(axis="pp ends")
        assert (message.elements, times, message.size) == (64_000 // 4, 1, 2)
    assert sum(traced(tied, {"pp": 2}).of_stage(stage).parameters for stage in (0, 1)) == 228_672
    assert tied.parameter_count == 164_672


def test_a_tied_embedding_on_one_rank_is_moved_once() -> None:
    for layout in ({"fsdp": 4}, {"dp": 4}):
        step = traced(toy(tie_word_embeddings=True), layout)
        reduced = [(m, t) for m, t in step.of_stage(0).ledger.times.items() if m.label.endswith(("gradients", "buckets"))]
        assert sum(times * message.elements for message, times in reduced) == 164_672
        assert step.of_stage(0).ledger.count(axis="pp ends") == 0


def test_only_the_ends_hold_a_tied_embedding() -> None:
    step = traced(toy(tie_word_embeddings=True, num_hidden_layers=4), {"pp": 4})
    assert [step.of_stage(stage).ledger.count(axis="pp ends") for stage in range(4)] == [1, 0, 0, 1]


@pytest.mark.parametrize(("layout", "axis"), [
    ({"dp": 4}, None), ({"tp": 4}, "tp"), ({"tp": 2, "pp": 2, "dp": 2}, "tp+pp"), ({"fsdp": 4, "dp": 2}, "fsdp"),
])
def test_the_gradient_norm_is_reduced_over_the_ranks_that_differ(layout: dict[str, int], axis: str | None) -> None:
    found = list(traced(toy(), layout).of_stage(0).ledger.select(label="gradient norm"))
    assert [(str(message.group), message.elements, message.dtype) for message, _ in found] == (
        [(axis, 1, "fp32")] if axis else [])


# --- all together ------------------------------------------------------------------------------------------------------

def test_llama_3_8b_on_sixteen_ranks(llama: Model) -> None:
    step = traced(llama, {"dp": 2, "tp": 4, "pp": 2}, microbatches=8, grad_dtype="fp32")
    first = step.of_stage(0)
    assert first.parameters == 1_003_880_448
    in_layers = [label for label in {m.label for m in first.ledger.times} if label.startswith(("attention", "mlp"))]
    assert sum(first.ledger.sent_bytes(label=label) for label in in_layers) == 51_539_607_552
    assert first.ledger.sent_bytes(label="embedding output") == 805_306_368
    assert first.ledger.sent_bytes(axis="pp") == 536_870_912
    assert first.ledger.sent_bytes(axis="dp") == 4_015_521_792


def test_nothing_is_sent_on_one_rank() -> None:
    assert traced(toy(), {}, microbatches=3).total_bytes() == 0
