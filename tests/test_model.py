"""Parameter counts are exact, and a config that does not say enough, or too much, is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treering.core.errors import TreeringError
from treering.training.config import MAX_FILE_BYTES, ConfigError, config_of
from treering.training.families import FAMILIES
from treering.training.model import Model, build, read_model

EXAMPLES = Path(__file__).parents[1] / "examples"

TOY = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 176,
    "vocab_size": 1000, "max_position_embeddings": 128,
}
DEEPSEEK_TOY = TOY | {
    "model_type": "deepseek", "num_hidden_layers": 4, "intermediate_size": 256, "n_routed_experts": 8,
    "first_k_dense_replace": 1, "moe_intermediate_size": 32, "n_shared_experts": 1, "num_experts_per_tok": 2,
}


def model(config: dict[str, object], **changes: object) -> Model:
    return build(config_of(config | changes))


@pytest.mark.parametrize(("name", "count"), [
    ("gpt2", 124_439_808),
    ("llama-3-8b", 8_030_261_248),
    ("llama-3-70b", 70_553_706_496),
    ("llama-3.1-405b", 405_853_388_800),
    ("qwen3-4b", 4_022_468_096),
    ("mixtral-8x7b", 46_702_792_704),
    ("deepseek-v3", 671_026_419_200),
])
def test_the_parameters_of_real_models(name: str, count: int) -> None:
    assert read_model(EXAMPLES / f"{name}.json").parameter_count == count


@pytest.mark.parametrize(("config", "count"), [
    # As published; the numbers of the configs are those of the models' repositories.
    ({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
      "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096}, 6_738_415_616),
    ({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
      "max_position_embeddings": 32768}, 7_241_732_096),
    ({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
      "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 32768,
      "tie_word_embeddings": False}, 7_615_616_512),
    ({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
      "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
      "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 40960,
      "tie_word_embeddings": False, "decoder_sparse_step": 1, "mlp_only_layers": []}, 30_532_122_624),
    ({"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
      "num_key_value_heads": 16, "intermediate_size": 5632, "moe_intermediate_size": 1408,
      "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4, "vocab_size": 151936,
      "max_position_embeddings": 8192}, 14_315_784_192),
    ({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16,
      "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
      "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": None, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400,
      "max_position_embeddings": 163840}, 15_706_484_224),
    ({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 8,
      "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000,
      "max_position_embeddings": 8192}, 2_506_172_416),
    ({"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
      "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256000,
      "max_position_embeddings": 8192}, 2_614_341_888),
    ({"model_type": "gemma3_text", "hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 4,
      "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
      "max_position_embeddings": 32768}, 999_885_952),
])
def test_every_family_has_the_published_count_of_a_real_model(config: dict[str, object], count: int) -> None:
    assert model(config).parameter_count == count


def test_missing_key_value_heads_are_as_many_as_heads() -> None:
    assert model(TOY).parameter_count == 228_672
    assert model(TOY, num_key_value_heads=None).parameter_count == 228_672
    assert model(TOY, num_key_value_heads=1).parameter_count == 214_336


def test_qwen2_has_biases_although_no_key_says_so() -> None:
    changes = {"num_key_value_heads": 2, "tie_word_embeddings": True}
    assert model(TOY, model_type="qwen2", **changes).parameter_count == 152_576
    assert model(TOY, **changes).parameter_count == 152_384


def test_tied_embeddings_follow_the_key_and_then_the_family() -> None:
    assert model(TOY).parameter_count == 228_672
    assert model(TOY, tie_word_embeddings=True).parameter_count == 164_672
    assert not model(TOY).architecture.tied
    assert model(TOY, model_type="gemma2", head_dim=8).architecture.tied


def test_mixtures_of_experts() -> None:
    mixtral = model(TOY, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2, intermediate_size=112)
    assert (mixtral.parameter_count, mixtral.active_count) == (506_176, 248_128)
    deepseek = model(DEEPSEEK_TOY)
    assert (deepseek.parameter_count, deepseek.active_count) == (410_688, 300_096)
    assert [unit.mixture for unit in deepseek.units] == [False, False, True, True, True, False]
    assert deepseek.units[2].parameters["router"].elements == 512
    large = read_model(EXAMPLES / "deepseek-v3.json")
    assert round(large.active_count / 1e9, 1) == 37.6


@pytest.mark.parametrize("alias", ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"])
def test_the_number_of_experts_has_many_names(alias: str) -> None:
    config = {key: value for key, value in DEEPSEEK_TOY.items() if key != "n_routed_experts"}
    assert model(config, **{alias: 8}).parameter_count == 410_688


def test_only_the_layers_that_qwens_rule_names_are_mixtures() -> None:
    config = TOY | {"model_type": "qwen3_moe", "head_dim": 8, "num_hidden_layers": 6, "num_experts": 4,
                    "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    mixtures = [unit.mixture for unit in model(config, decoder_sparse_step=2, mlp_only_layers=[3]).units[1:-1]]
    assert mixtures == [False, True, False, False, False, True]


def test_a_nested_text_config_is_found() -> None:
    outer = {"model_type": "llava", "text_config": TOY, "vision_config": {"hidden_size": 1024}}
    assert model(outer).parameter_count == 228_672
    assert model({"text_config": TOY, "tie_word_embeddings": True}).parameter_count == 164_672
    assert model({"text_config": TOY | {"tie_word_embeddings": True}}).parameter_count == 164_672


def test_an_unknown_family_names_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"'surprise' is not known.*biases.*norms.*Known: deepseek"):
        model(TOY, model_type="surprise")


@pytest.mark.parametrize("key", list(TOY))
def test_no_required_number_is_ever_guessed(key: str) -> None:
    with pytest.raises(ConfigError, match=f"lacks {key}"):
        model({name: value for name, value in TOY.items() if name != key})


@pytest.mark.parametrize("value", [-1, 0, True, 1.5, "64", [64], {}, 10**30, float("nan")])
def test_senseless_numbers_are_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="hidden_size must be"):
        model(TOY, hidden_size=value)


@pytest.mark.parametrize("changes", [
    {"num_attention_heads": 7}, {"num_key_value_heads": 3}, {"tie_word_embeddings": 1}, {"model_type": 3},
    {"num_hidden_layers": 10**6},
])
def test_facts_that_contradict_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        model(TOY | changes)


def test_more_experts_than_can_be_is_refused_before_they_are_built() -> None:
    with pytest.raises(ConfigError, match="more than 1,000,000 tensors"):
        model(DEEPSEEK_TOY, n_routed_experts=10**8)


@pytest.mark.parametrize("content", [
    b"", b"{", b"[1, 2]", b"null", b"\xff\xfe\x00", b'{"hidden_size": NaN}', b'{"hidden_size": Infinity}',
    b"[" * 100_000, b'{"hidden_size": ' + b"9" * 10_000 + b"}", b" " * (MAX_FILE_BYTES + 1),
])
def test_a_hostile_file_gets_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.json: "):
        read_model(path)


def test_a_file_that_is_not_there_gets_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_model(tmp_path / "config.json")
    with pytest.raises(ConfigError, match="directory"):
        read_model(tmp_path)


words = st.sampled_from(["", "64", "llama", "hidden_size", "num_experts"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*TOY, "text_config", "head_dim", "num_experts", "mlp_only_layers"]), values),
       st.sampled_from([name for family in FAMILIES for name in family.names]))
def test_whatever_a_config_holds_it_is_read_or_refused(changes: dict[str, object], name: str) -> None:
    try:
        found = build(config_of(TOY | {"model_type": name} | changes))
    except TreeringError:
        return
    assert found.parameter_count > 0


def test_reading_a_model_loads_neither_mpi_nor_numpy() -> None:
    program = ("import sys; from treering.training.step import trace; from treering.training.model import read_model; "
               "assert not {'mpi4py.MPI', 'numpy'} & set(sys.modules), sorted(sys.modules)")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_examples_are_json_objects() -> None:
    paths = sorted(EXAMPLES.glob("*.json"))
    assert len(paths) >= 7
    assert all(isinstance(json.loads(path.read_text()), dict) for path in paths)
