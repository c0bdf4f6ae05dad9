"""What each model family's definition says beyond the numbers in its ``config.json``.

A config does not say whether the query projection has a bias or how many norms a layer has; the family's code does. These
are transcribed from Hugging Face transformers' modelling files, one record a ``model_type``. A key that a family's own
configuration class defaults is defaulted here to the same value; every other missing key is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .config import Config


@dataclass(frozen=True)
class Experts:
    """A mixture of experts in place of the MLP of some layers.

    Attributes
    ----------
    count, chosen
        Routed experts, and how many of them a token goes to.
    width
        Inner width of one routed expert.
    shared_width
        Inner width of the expert that every token goes to; 0 without one.
    shared_gate
        Whether that expert's output is scaled by a gate of its own.
    router_bias
        Whether the router corrects its scores with one number an expert.
    """

    count: int
    chosen: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: queries, keys and values go through narrow latents (DeepSeek-V2, arXiv:2405.04434)."""

    query_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True)
class Architecture:
    """All that the shapes of a model's parameters follow from. Sizes are numbers of elements."""

    family: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    positions: int
    learned_positions: bool
    tied: bool
    output_norms: bool
    norm_bias: bool
    head_norms: bool
    qkv_bias: bool
    output_bias: bool
    gated: bool
    mlp_bias: bool
    fused: bool
    latent: Latent | None
    experts: Experts | None
    mixture_layers: frozenset[int]


@dataclass(frozen=True)
class Family:
    """One ``model_type`` (or several that differ only in their numbers).

    Attributes
    ----------
    names
        The ``model_type`` values.
    tied
        Whether the output projection is the embedding when ``tie_word_embeddings`` is absent.
    biases
        ``"none"``, ``"qkv"`` (always on q, k, v, never on the output), ``"all"``, or ``"key"``: as ``attention_bias`` says.
    output_norms
        Whether a layer norms the outputs of attention and MLP too, not only their inputs.
    gated
        Whether the MLP is ``down(act(gate(x)) * up(x))``.
    mlp_bias
        ``"none"``, ``"all"`` or ``"key"``: as ``mlp_bias`` says.
    head_norms
        Whether queries and keys are normed per head.
    own_head_dim
        Whether the family's head dimension is a number of its own, not hidden / heads, so that the key is required.
    layer_norm
        LayerNorm with weight and bias and learned positions, as GPT-2; otherwise RMSNorm and rotary positions.
    experts
        Reads the mixture of experts, if the family has one; returns it and the layers that have it.
    """

    names: tuple[str, ...]
    tied: bool = False
    biases: Literal["none", "qkv", "all", "key"] = "none"
    output_norms: bool = False
    gated: bool = True
    mlp_bias: Literal["none", "all", "key"] = "none"
    head_norms: bool = False
    own_head_dim: bool = False
    layer_norm: bool = False
    experts: Callable[[Config, int], tuple[Experts, frozenset[int]] | None] | None = None


def _every_layer(config: Config, layers: int) -> tuple[Experts, frozenset[int]]:
    """Mixtral: every layer is a mixture, of experts as wide as the config's only width."""
    count, chosen = _routed(config)
    return Experts(count, chosen, config.integer("intermediate_size")), frozenset(range(layers))


def _qwen(config: Config, layers: int) -> tuple[Experts, frozenset[int]] | None:
    """Qwen-MoE: every decoder_sparse_step-th layer, counted from one, unless listed in mlp_only_layers."""
    count, chosen = _routed(config)
    shared = config.integer("shared_expert_intermediate_size", default=0, minimum=0)
    step = config.integer("decoder_sparse_step", default=1)
    dense = set(config.integers("mlp_only_layers"))
    mixture = frozenset(i for i in range(layers) if i not in dense and (i + 1) % step == 0)
    return Experts(count, chosen, config.integer("moe_intermediate_size"), shared, shared_gate=shared > 0), mixture


def _deepseek(config: Config, layers: int) -> tuple[Experts, frozenset[int]] | None:
    """DeepSeek: all but the first layers, every moe_layer_freq-th; shared experts act as one wider expert."""
    if not config.has(*_COUNT):
        return None
    count, chosen = _routed(config)
    width = config.integer("moe_intermediate_size")
    shared = width * config.integer("n_shared_experts", default=0, minimum=0)
    first = config.integer("first_k_dense_replace", default=0, minimum=0)
    step = config.integer("moe_layer_freq", default=1)
    corrected = config.text("model_type") == "deepseek_v3"
    mixture = frozenset(i for i in range(layers) if i >= first and i % step == 0)
    return Experts(count, chosen, width, shared, router_bias=corrected), mixture


_COUNT = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def _routed(config: Config) -> tuple[int, int]:
    count = config.integer(*_COUNT)
    chosen = config.integer("num_experts_per_tok", "moe_topk", "moe_top_k")
    if chosen > count:
        config.refuse(f"a token cannot go to {chosen} of {count} experts")
    return count, chosen


FAMILIES = (
    Family(("gpt2",), tied=True, biases="all", gated=False, mlp_bias="all", layer_norm=True),
    Family(("llama",), biases="key", mlp_bias="key"),
    Family(("mistral",)),
    Family(("mixtral",), experts=_every_layer),
    Family(("qwen2",), biases="qkv"),
    Family(("qwen2_moe",), biases="qkv", experts=_qwen),
    Family(("qwen3",), biases="key", head_norms=True, own_head_dim=True),
    Family(("qwen3_moe",), biases="key", head_norms=True, own_head_dim=True, experts=_qwen),
    Family(("deepseek", "deepseek_v2", "deepseek_v3"), biases="key", experts=_deepseek),
    Family(("gemma",), tied=True, biases="key", own_head_dim=True),
    Family(("gemma2",), tied=True, biases="key", own_head_dim=True, output_norms=True),
    Family(("gemma3", "gemma3_text"), tied=True, biases="key", own_head_dim=True, output_norms=True, head_norms=True),
)

_BY_NAME = {name: family for family in FAMILIES for name in family.names}


def architecture(config: Config) -> Architecture:
    """Gather a model's architecture from its config.

    Raises
    ------
    ConfigError
        For a family that is not known, and for every missing or senseless number.
    """
    name = config.text("model_type")
    family = _BY_NAME.get(name)
    if family is None:
        config.refuse(
            f"model_type {name!r} is not known, and its config alone does not say: which projections have biases, "
            "the norms of a layer, gated MLP or not, norms on queries and keys, whether the embedding is tied, "
            f"which layers are mixtures of experts. Known: {', '.join(sorted(_BY_NAME))}"
        )
    hidden = config.integer("hidden_size", "n_embd", "d_model")
    layers = config.integer("num_hidden_layers", "n_layer", "num_layers")
    heads = config.integer("num_attention_heads", "n_head")
    kv_heads = config.integer("num_key_value_heads", default=heads)
    if heads % kv_heads:
        config.refuse(f"{heads} attention heads do not share {kv_heads} key/value heads evenly")
    latent = _latent(config) if name in ("deepseek_v2", "deepseek_v3") else None
    experts = family.experts(config, layers) if family.experts else None
    follows_key = config.boolean("attention_bias", False) if family.biases == "key" else False
    return Architecture(
        family=name,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(config, family, hidden, heads) if latent is None else latent.nope_dim + latent.rope_dim,
        intermediate=_intermediate(config, family, hidden),
        vocab=config.integer("vocab_size"),
        positions=config.integer("max_position_embeddings", "n_positions", "n_ctx"),
        learned_positions=family.layer_norm,
        tied=config.boolean("tie_word_embeddings", family.tied),
        output_norms=family.output_norms,
        norm_bias=family.layer_norm,
        head_norms=family.head_norms,
        qkv_bias=family.biases in ("qkv", "all") or follows_key,
        output_bias=family.biases == "all" or follows_key,
        gated=family.gated,
        mlp_bias=family.mlp_bias == "all" or (family.mlp_bias == "key" and config.boolean("mlp_bias", False)),
        fused=family.layer_norm,
        latent=latent,
        experts=experts[0] if experts else None,
        mixture_layers=experts[1] if experts else frozenset(),
    )


def _head_dim(config: Config, family: Family, hidden: int, heads: int) -> int:
    if family.own_head_dim or config.has("head_dim"):
        return config.integer("head_dim")
    if hidden % heads:
        config.refuse(f"hidden size {hidden} is not divisible by {heads} heads, and there is no head_dim")
    return hidden // heads


def _intermediate(config: Config, family: Family, hidden: int) -> int:
    if family.layer_norm:
        return config.integer("n_inner", "intermediate_size", default=4 * hidden)
    return config.integer("intermediate_size")


def _latent(config: Config) -> Latent:
    return Latent(
        query_rank=config.integer("q_lora_rank") if config.has("q_lora_rank") else None,
        kv_rank=config.integer("kv_lora_rank"),
        nope_dim=config.integer("qk_nope_head_dim"),
        rope_dim=config.integer("qk_rope_head_dim"),
        value_dim=config.integer("v_head_dim"),
    )
