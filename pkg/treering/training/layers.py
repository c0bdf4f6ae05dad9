"""The transformer's units as programs: forward written out, backward by the tape, communication by the strategies.

These follow Megatron-LM's placing of tensor-parallel communication: one `enter` before the column-parallel layers of a
block, one `leave` after its row-parallel layer (Shoeybi et al., arXiv:1909.08053, figure 3).
"""

from __future__ import annotations

from collections.abc import Mapping

from . import operators as op
from .families import Architecture, Latent
from .model import Unit
from .strategies.tp import TensorParallel
from .tape import Tape
from .tensor import Tensor

Weights = Mapping[str, Tensor]


class Layers:
    """Runs units of one model under tensor parallelism.

    Parameters
    ----------
    facts
        The architecture.
    tp
        What enters and leaves tensor-parallel regions.
    """

    def __init__(self, facts: Architecture, tp: TensorParallel) -> None:
        self.facts = facts
        self.tp = tp

    def embedding(self, tape: Tape, tokens: Tensor, weights: Weights) -> Tensor:
        """Token numbers → hidden states."""
        x = self.tp.leave(tape, tape.apply(op.EMBEDDING, tokens, weights["table"]), "embedding output")
        if "positions" in weights:
            x = tape.apply(op.POSITIONS, x, weights["positions"])
        return x

    def layer(self, tape: Tape, x: Tensor, weights: Weights, unit: Unit) -> Tensor:
        """Attention and MLP, each on the normed input and added to it."""
        y = self._attention(tape, _norm(tape, x, weights, "attention_norm"), weights)
        x = tape.apply(op.ADD, x, _norm(tape, y, weights, "attention_output_norm"))
        inner = _norm(tape, x, weights, "mlp_norm")
        y = self._mixture(tape, inner, weights) if unit.mixture else self._mlp(tape, inner, weights)
        return tape.apply(op.ADD, x, _norm(tape, y, weights, "mlp_output_norm"))

    def head(self, tape: Tape, x: Tensor, weights: Weights, table: Tensor) -> Tensor:
        """Hidden states → loss of every token, over a vocabulary that may lie on several ranks."""
        x = self.tp.enter(tape, _norm(tape, x, weights, "norm"), "head input gradient")
        return self.tp.cross_entropy(tape, tape.apply(op.LINEAR, x, table))

    def _attention(self, tape: Tape, x: Tensor, weights: Weights) -> Tensor:
        if self.facts.latent is not None:
            inner = self._latent_heads(tape, x, weights, self.facts.latent)
        else:
            inner = self._heads(tape, self.tp.enter(tape, x, "attention input gradient"), weights)
        y = self.tp.leave(tape, _linear(tape, inner, weights, "o", self.facts.fused), "attention output")
        return _bias(tape, y, weights, "o")

    def _heads(self, tape: Tape, x: Tensor, weights: Weights) -> Tensor:
        if self.facts.fused:
            qkv = _bias(tape, _linear(tape, x, weights, "qkv", transposed=True), weights, "qkv")
            return tape.apply(op.ATTENTION, qkv, width=qkv.shape[-1] // 3)
        q, k, v = (_bias(tape, _linear(tape, x, weights, role), weights, role) for role in ("q", "k", "v"))
        q, k = _norm(tape, q, weights, "q_norm"), _norm(tape, k, weights, "k_norm")
        return tape.apply(op.ATTENTION, q, k, v)

    def _latent_heads(self, tape: Tape, x: Tensor, weights: Weights, latent: Latent) -> Tensor:
        """MLA: the narrow projections are whole on every rank; what they make enters the parallel region, not x."""
        if latent.query_rank is None:
            q = _linear(tape, self.tp.enter(tape, x, "attention input gradient"), weights, "q")
        else:
            low = _norm(tape, _bias(tape, _linear(tape, x, weights, "q_down"), weights, "q_down"), weights, "q_norm")
            q = _linear(tape, self.tp.enter(tape, low, "query latent gradient"), weights, "q_up")
        down = _bias(tape, _linear(tape, x, weights, "kv_down"), weights, "kv_down")
        low = _norm(tape, tape.apply(op.PART, down, width=latent.kv_rank), weights, "kv_norm")
        rope = self.tp.enter(tape, tape.apply(op.PART, down, width=latent.rope_dim), "rotary key gradient")
        kv = _linear(tape, self.tp.enter(tape, low, "key/value latent gradient"), weights, "kv_up")
        heads = q.shape[-1] // (latent.nope_dim + latent.rope_dim)
        return tape.apply(op.ATTENTION, q, kv, rope, width=heads * latent.value_dim)

    def _mlp(self, tape: Tape, x: Tensor, weights: Weights) -> Tensor:
        x = self.tp.enter(tape, x, "mlp input gradient")
        y = self.tp.leave(tape, self._inner(tape, x, weights, ""), "mlp output")
        return _bias(tape, y, weights, "down")

    def _inner(self, tape: Tape, x: Tensor, weights: Weights, prefix: str) -> Tensor:
        """Widen, activate, narrow: what is made is a term of the sum over the tensor-parallel ranks."""
        roles = [prefix + role for role in (("gate", "up") if self.facts.gated else ("up",))]
        wide = [_bias(tape, _linear(tape, x, weights, role, self.facts.fused), weights, role) for role in roles]
        return _linear(tape, tape.apply(op.ACTIVATION, *wide), weights, f"{prefix}down", self.facts.fused)

    def _mixture(self, tape: Tape, x: Tensor, weights: Weights) -> Tensor:
        """Route over the experts, each cut over the tensor-parallel ranks; without expert parallelism no token moves."""
        x = self.tp.enter(tape, x, "mlp input gradient")
        scores = _linear(tape, x, weights, "router")
        routed = [weight for role, weight in weights.items() if role.startswith("experts.")]
        y = tape.apply(op.MIXTURE, x, scores, *routed)
        if "shared.down" in weights:
            shared = self._inner(tape, x, weights, "shared.")
            if "shared_gate" in weights:
                shared = tape.apply(op.SCALE, shared, _linear(tape, x, weights, "shared_gate"))
            y = tape.apply(op.ADD, y, shared)
        return self.tp.leave(tape, y, "mlp output")


def _linear(tape: Tape, x: Tensor, weights: Weights, role: str, transposed: bool = False) -> Tensor:
    return tape.apply(op.LINEAR, x, weights[role], transposed=transposed)


def _bias(tape: Tape, x: Tensor, weights: Weights, role: str) -> Tensor:
    bias = weights.get(f"{role}_bias")
    return x if bias is None else tape.apply(op.BIAS, x, bias)


def _norm(tape: Tape, x: Tensor, weights: Weights, role: str) -> Tensor:
    """Norm, where the family has one of that name."""
    if role not in weights:
        return x
    bias = weights.get(f"{role}_bias")
    return tape.apply(op.NORM, x, weights[role], *([bias] if bias is not None else []))
