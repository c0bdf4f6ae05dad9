"""A model as named tensors: what there is, where it is used, and which dim tensor parallelism cuts.

>>> from treering.training.config import config_of
>>> model = build(config_of({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
...                          "vocab_size": 50257}))
>>> f"{model.parameter_count:,}"
'124,439,808'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Literal

from .config import Config, read_config
from .families import Architecture, architecture

MAX_TENSORS = 1_000_000
"""DeepSeek-V3 has 45 thousand. Beyond this the config is a mistake, and building it would only take long."""

Kind = Literal["embedding", "layer", "head"]


@dataclass(frozen=True)
class Parameter:
    """A tensor that training changes.

    Attributes
    ----------
    name
        Unit and role, e.g. ``"layers.3.q"``.
    shape
        Whole, as the framework stores it: (out, in) for linear layers, (in, out) for GPT-2's.
    split
        The dim that tensor parallelism cuts; None where every rank keeps the whole.
    transposed
        Stored (in, out).
    expert
        Belongs to one routed expert.
    """

    name: str
    shape: tuple[int, ...]
    split: int | None = None
    transposed: bool = False
    expert: bool = False

    @property
    def elements(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Unit:
    """What pipelines place, and FSDP gathers, as a whole: the embedding, one layer, or the head with the last norm."""

    name: str
    kind: Kind
    parameters: Mapping[str, Parameter]
    mixture: bool = False

    @property
    def elements(self) -> int:
        return sum(parameter.elements for parameter in self.parameters.values())


@dataclass(frozen=True)
class Model:
    """A model: its architecture and its units, in the order of the forward pass."""

    architecture: Architecture
    units: tuple[Unit, ...]

    def parameters(self) -> Iterator[Parameter]:
        """All tensors, each once: a tied head has no tensor of its own."""
        for unit in self.units:
            yield from unit.parameters.values()

    @cached_property
    def parameter_count(self) -> int:
        """Elements of all tensors, a tied one counted once."""
        return sum(parameter.elements for parameter in self.parameters())

    @cached_property
    def active_count(self) -> int:
        """Elements that take part in one token's forward pass: of the routed experts only the chosen ones."""
        experts = self.architecture.experts
        if experts is None:
            return self.parameter_count
        routed = sum(parameter.elements for parameter in self.parameters() if parameter.expert)
        return self.parameter_count - routed + routed * experts.chosen // experts.count


def read_model(path: str | Path) -> Model:
    """Read a model's ``config.json``.

    Raises
    ------
    ConfigError
        When the file cannot be read or does not describe a known model.
    """
    return build(read_config(path))


def build(config: Config) -> Model:
    """Build the model that a config describes, as Hugging Face transformers would."""
    facts = architecture(config)
    tensors_per_mixture = 3 * facts.experts.count if facts.experts else 0
    if facts.layers * 20 + len(facts.mixture_layers) * tensors_per_mixture > MAX_TENSORS:
        config.refuse(f"describes more than {MAX_TENSORS:,} tensors")
    layers = (_layer(facts, index) for index in range(facts.layers))
    return Model(facts, (_embedding(facts), *layers, _head(facts)))


def _embedding(facts: Architecture) -> Unit:
    tensors = _Tensors("embedding")
    tensors.add("table", (facts.vocab, facts.hidden), split=0)
    if facts.learned_positions:
        tensors.add("positions", (facts.positions, facts.hidden))
    return Unit("embedding", "embedding", tensors.made)


def _head(facts: Architecture) -> Unit:
    tensors = _Tensors("head")
    tensors.norm("norm", facts.hidden, facts.norm_bias)
    if not facts.tied:
        tensors.add("table", (facts.vocab, facts.hidden), split=0)
    return Unit("head", "head", tensors.made)


def _layer(facts: Architecture, index: int) -> Unit:
    tensors = _Tensors(f"layers.{index}")
    mixture = index in facts.mixture_layers
    tensors.norm("attention_norm", facts.hidden, facts.norm_bias)
    _attention(tensors, facts)
    if facts.output_norms:
        tensors.norm("attention_output_norm", facts.hidden)
    tensors.norm("mlp_norm", facts.hidden, facts.norm_bias)
    if mixture:
        _mixture(tensors, facts)
    else:
        tensors.mlp("", facts, facts.intermediate)
    if facts.output_norms:
        tensors.norm("mlp_output_norm", facts.hidden)
    return Unit(f"layers.{index}", "layer", tensors.made, mixture)


def _attention(tensors: _Tensors, facts: Architecture) -> None:
    if facts.latent is not None:
        _latent_attention(tensors, facts)
        return
    query, kv = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    if facts.fused:
        tensors.column("qkv", query + 2 * kv, facts.hidden, facts.qkv_bias, transposed=True)
    else:
        tensors.column("q", query, facts.hidden, facts.qkv_bias)
        tensors.column("k", kv, facts.hidden, facts.qkv_bias)
        tensors.column("v", kv, facts.hidden, facts.qkv_bias)
    if facts.head_norms:
        tensors.norm("q_norm", facts.head_dim)
        tensors.norm("k_norm", facts.head_dim)
    tensors.row("o", facts.hidden, query, facts.output_bias, transposed=facts.fused)


def _latent_attention(tensors: _Tensors, facts: Architecture) -> None:
    """Add MLA's projections: narrow ones whole on every rank, wide ones cut by heads."""
    latent = facts.latent
    assert latent is not None
    query = facts.heads * (latent.nope_dim + latent.rope_dim)
    if latent.query_rank is None:
        tensors.column("q", query, facts.hidden)
    else:
        tensors.whole("q_down", latent.query_rank, facts.hidden, facts.qkv_bias)
        tensors.norm("q_norm", latent.query_rank)
        tensors.column("q_up", query, latent.query_rank)
    tensors.whole("kv_down", latent.kv_rank + latent.rope_dim, facts.hidden, facts.qkv_bias)
    tensors.norm("kv_norm", latent.kv_rank)
    tensors.column("kv_up", facts.heads * (latent.nope_dim + latent.value_dim), latent.kv_rank)
    tensors.row("o", facts.hidden, facts.heads * latent.value_dim, facts.output_bias)


def _mixture(tensors: _Tensors, facts: Architecture) -> None:
    experts = facts.experts
    assert experts is not None
    tensors.whole("router", experts.count, facts.hidden)
    if experts.router_bias:
        tensors.add("router_bias", (experts.count,))
    for expert in range(experts.count):
        tensors.mlp(f"experts.{expert}.", facts, experts.width, expert=True)
    if experts.shared_width:
        tensors.mlp("shared.", facts, experts.shared_width)
    if experts.shared_gate:
        tensors.whole("shared_gate", 1, facts.hidden)


class _Tensors:
    """Collects the tensors of one unit, by role."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self.made: dict[str, Parameter] = {}

    def add(self, role: str, shape: tuple[int, ...], split: int | None = None, *, transposed: bool = False,
            expert: bool = False) -> None:
        self.made[role] = Parameter(f"{self._unit}.{role}", shape, split, transposed, expert)

    def norm(self, role: str, width: int, bias: bool = False) -> None:
        self.add(role, (width,))
        if bias:
            self.add(f"{role}_bias", (width,))

    def column(self, role: str, out: int, width: int, bias: bool = False, *, transposed: bool = False,
               expert: bool = False) -> None:
        """Add a linear layer that tensor parallelism cuts by its outputs, bias included."""
        shape = (width, out) if transposed else (out, width)
        self.add(role, shape, 1 if transposed else 0, transposed=transposed, expert=expert)
        if bias:
            self.add(f"{role}_bias", (out,), 0)

    def row(self, role: str, out: int, width: int, bias: bool = False, *, transposed: bool = False,
            expert: bool = False) -> None:
        """Add a linear layer that is cut by its inputs; its bias is added to the sum and so stays whole."""
        shape = (width, out) if transposed else (out, width)
        self.add(role, shape, 0 if transposed else 1, transposed=transposed, expert=expert)
        if bias:
            self.add(f"{role}_bias", (out,))

    def whole(self, role: str, out: int, width: int, bias: bool = False) -> None:
        self.add(role, (out, width))
        if bias:
            self.add(f"{role}_bias", (out,))

    def mlp(self, prefix: str, facts: Architecture, width: int, *, expert: bool = False) -> None:
        for role in ("gate", "up") if facts.gated else ("up",):
            self.column(prefix + role, width, facts.hidden, facts.mlp_bias, transposed=facts.fused, expert=expert)
        self.row(f"{prefix}down", facts.hidden, width, facts.mlp_bias, transposed=facts.fused, expert=expert)
