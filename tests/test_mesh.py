"""Who is in which group, and which layouts are refused with what would be valid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treering.core.errors import Refused
from treering.training.config import config_of
from treering.training.job import Job, Settings
from treering.training.mesh import Group, Mesh, parse_layout
from treering.training.model import Model, build

TOY = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 176,
    "vocab_size": 1000, "max_position_embeddings": 128,
}


def model(**changes: object) -> Model:
    return build(config_of(TOY | changes))


def test_megatron_order_has_tp_fastest_and_pp_slowest() -> None:
    mesh = Mesh.of({"dp": 2, "tp": 4, "pp": 2})
    assert list(mesh.groups(Group(("tp",))))[:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [mesh.stride(axis) for axis in ("tp", "dp", "pp")] == [1, 4, 8]
    assert mesh.members(Group(("pp",)), mesh.coordinates(3)) == [3, 11]
    assert mesh.coordinates(13) == {"tp": 1, "fsdp": 0, "dp": 1, "pp": 1}


def test_another_order_by_name() -> None:
    mesh = Mesh.of({"dp": 2, "tp": 2, "pp": 2}, order=("tp", "pp", "fsdp", "dp"))
    assert [mesh.stride(axis) for axis in ("tp", "pp", "dp")] == [1, 2, 4]


def test_hsdp_shards_within_and_replicates_across() -> None:
    mesh = Mesh.of({"dp": 2, "fsdp": 4})
    assert list(mesh.groups(Group(("fsdp",)))) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert next(mesh.groups(Group(("dp",)))) == [0, 4]


def test_the_ends_of_a_pipeline() -> None:
    mesh = Mesh.of({"tp": 2, "pp": 4})
    assert list(mesh.groups(Group(("pp",), ends=True))) == [[0, 6], [1, 7]]
    assert mesh.group_size(Group(("pp",), ends=True)) == 2


sizes = st.fixed_dictionaries({axis: st.integers(1, 4) for axis in ("tp", "fsdp", "dp", "pp")})


@given(sizes, st.permutations(["tp", "fsdp", "dp", "pp"]), st.sets(st.sampled_from(["tp", "fsdp", "dp", "pp"]), min_size=1))
def test_groups_partition_the_ranks(sizes: dict[str, int], order: list[str], axes: set[str]) -> None:
    mesh = Mesh.of(sizes, tuple(order))
    group = Group(tuple(sorted(axes)))
    groups = list(mesh.groups(group))
    assert sorted(rank for members in groups for rank in members) == list(range(mesh.size))
    for members in groups:
        assert len(members) == mesh.group_size(group)
        for rank in members:
            assert mesh.rank(mesh.coordinates(rank)) == rank
            assert mesh.members(group, mesh.coordinates(rank)) == members


def test_layouts_are_read() -> None:
    assert parse_layout("dp=2, tp=4") == {"dp": 2, "tp": 4}
    assert parse_layout("dp=auto,tp=2,pp=2", ranks=8) == {"dp": 2, "tp": 2, "pp": 2}


@pytest.mark.parametrize(("text", "ranks", "why"), [
    ("dp=1,tp=2,pp=3", 8, "dp 1 x tp 2 x pp 3 = 6 ranks, but there are 8"),
    ("dp=auto,tp=3", 8, "tp 3 does not divide 8"),
    ("dp=auto", None, "needs the number of ranks"),
    ("dp=0", None, "positive integer, not '0'"),
    ("dp=-2", None, "positive integer, not '-2'"),
    ("dp=2.0", None, "positive integer"),
    ("dp=1000000000000", None, "positive integer"),
    ("dp=²", None, "positive integer"),
    ("dp", None, "positive integer, not ''"),
    ("dp=2,dp=2", None, "given twice"),
    ("banana=2", None, "the axes are dp, fsdp, pp, tp"),
    ("", None, "no axis ''"),
])
def test_wrong_layouts_are_refused(text: str, ranks: int | None, why: str) -> None:
    with pytest.raises(Refused, match=why):
        parse_layout(text, ranks)


@pytest.mark.parametrize(("changes", "tp", "why"), [
    ({"num_attention_heads": 28, "num_key_value_heads": 28, "hidden_size": 3584, "intermediate_size": 28}, 8,
     r"28 \(attention heads\) cannot be divided by tp=8: valid tp are 1, 2, 4, 7, 14, 28$"),
    ({"num_attention_heads": 16, "num_key_value_heads": 2}, 4, r"2 \(key/value heads\).*valid tp are 1, 2"),
    ({"num_attention_heads": 40, "num_key_value_heads": 10, "hidden_size": 320}, 4, r"10 \(key/value heads\).*1, 2, 5, 10"),
    ({"intermediate_size": 170}, 4, r"170 \(the MLP's inner width\).*\(of the whole model: 1, 2\)"),
])
def test_heads_and_widths_that_tp_does_not_divide(changes: dict[str, object], tp: int, why: str) -> None:
    with pytest.raises(Refused, match=why):
        Job(model(**changes), Mesh.of({"tp": tp}))


def test_layers_that_pp_does_not_divide() -> None:
    with pytest.raises(Refused, match="4 layers cannot be divided into pp=3 equal stages: valid pp are 1, 2, 4"):
        Job(model(), Mesh.of({"pp": 3}))


@pytest.mark.parametrize(("settings", "why"), [
    (Settings(microbatches=0), "--microbatches must be at least 1, not 0"),
    (Settings(seq=-1), "--seq must be at least 1"),
    (Settings(micro_batch=0), "--micro-batch must be at least 1"),
    (Settings(dtype="int7"), "no dtype 'int7'"),
])
def test_senseless_sizes_name_the_users_flag(settings: Settings, why: str) -> None:
    with pytest.raises(Refused, match=why):
        Job(model(), Mesh.of({}), settings)


def test_learned_positions_bound_the_sequence() -> None:
    gpt2 = build(config_of({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32,
                            "vocab_size": 100}))
    with pytest.raises(Refused, match=r"--seq 64.*up to 32"):
        Job(gpt2, Mesh.of({}), Settings(seq=64))


def test_defaults() -> None:
    job = Job(model(max_position_embeddings=131072), Mesh.of({"pp": 2, "dp": 3}), Settings(dtype="float32"))
    assert (job.seq, job.microbatches, job.global_batch, job.dtype, job.grad_dtype) == (8192, 2, 6, "fp32", "fp32")
    assert Job(model(), Mesh.of({})).seq == 128


def test_the_vocabulary_is_padded_only_where_it_must_be() -> None:
    assert Job(model(), Mesh.of({"tp": 8})).vocab == 1000
    assert Job(model(vocab_size=1001), Mesh.of({"tp": 2})).vocab == 1002
    assert Job(model(vocab_size=128256), Mesh.of({"tp": 4}), Settings(vocab_multiple=128)).vocab == 128_512
