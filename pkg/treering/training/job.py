"""What to train and how it is spread: a model, a mesh and the sizes of a step, checked against each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd

from ..core.errors import Refused
from .mesh import Mesh
from .model import Model, Parameter, Unit
from .placements import Partitioned
from .strategies.pp import layers_of_stages
from .tensor import Tensor, check_dtype

DEFAULT_SEQUENCE_LIMIT = 8192
"""Models advertise contexts of 100,000 tokens and more; they are pre-trained on about this."""


@dataclass(frozen=True)
class Settings:
    """The sizes of a step.

    Attributes
    ----------
    seq
        Tokens of a sequence. None: the model's longest, but at most `DEFAULT_SEQUENCE_LIMIT`.
    micro_batch
        Sequences that one rank works on at a time.
    microbatches
        How many of them a step has. None: one for every pipeline stage, the fewest that ever keep all stages busy.
    dtype
        Of weights and activations.
    grad_dtype
        In which gradients are reduced. None: as `dtype`, which is what PyTorch does unless told otherwise (Megatron-LM
        and torchtitan reduce in fp32).
    reshard
        Whether FSDP's layers give up their weights between forward and backward.
    vocab_multiple
        The vocabulary is padded to a multiple of this times tp; Megatron-LM's own is 128.
    """

    seq: int | None = None
    micro_batch: int = 1
    microbatches: int | None = None
    dtype: str = "bf16"
    grad_dtype: str | None = None
    reshard: bool = True
    vocab_multiple: int = 1


class Job:
    """A training step to be: model, mesh and settings that fit each other.

    Parameters
    ----------
    model
        What is trained.
    mesh
        The ranks.
    settings
        The sizes of the step.

    Raises
    ------
    Refused
        When the layout does not divide the model, or a size is senseless; the message lists what would be valid.
    """

    def __init__(self, model: Model, mesh: Mesh, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.model = model
        self.mesh = mesh
        self.seq = settings.seq if settings.seq is not None else min(model.architecture.positions, DEFAULT_SEQUENCE_LIMIT)
        self.micro_batch = settings.micro_batch
        self.microbatches = settings.microbatches if settings.microbatches is not None else mesh.sizes["pp"]
        self.dtype = check_dtype(settings.dtype)
        self.grad_dtype = check_dtype(settings.grad_dtype or settings.dtype)
        self.reshard = settings.reshard
        self._vocab_multiple = settings.vocab_multiple
        for name, value in (("--seq", self.seq), ("--micro-batch", self.micro_batch),
                            ("--microbatches", self.microbatches), ("--vocab-multiple", self._vocab_multiple)):
            if value < 1:
                raise Refused(f"{name} must be at least 1, not {value}")
        facts = model.architecture
        if facts.learned_positions and self.seq > facts.positions:
            raise Refused(f"--seq {self.seq}: the model has learned positions only up to {facts.positions}")
        _check_tensor_parallel(model, mesh.sizes["tp"])
        self._layers = layers_of_stages(facts.layers, mesh.sizes["pp"])

    @property
    def global_batch(self) -> int:
        """Sequences that all ranks together train on in a step."""
        return self.micro_batch * self.microbatches * self.mesh.sizes["dp"] * self.mesh.sizes["fsdp"]

    @cached_property
    def vocab(self) -> int:
        """Rows of the embedding with padding."""
        multiple = self._vocab_multiple * self.mesh.sizes["tp"]
        return -(-self.model.architecture.vocab // multiple) * multiple if multiple > 1 else self.model.architecture.vocab

    def units(self, stage: int) -> list[Unit]:
        """Return the units of a pipeline stage, in the order of the forward pass."""
        embedding, *layers, head = self.model.units
        return [
            *([embedding] if stage == 0 else []),
            *(layers[index] for index in self._layers[stage]),
            *([head] if stage == self.mesh.sizes["pp"] - 1 else []),
        ]

    def weights(self, stage: int) -> dict[str, dict[str, Tensor]]:
        """Return a stage's weights by unit and role, each cut over the tensor-parallel ranks, as one rank holds them.

        The last stage of a model with a tied embedding holds a copy of it, under the head's role ``table``.
        """
        held = {
            unit.name: {role: self.local(parameter) for role, parameter in unit.parameters.items()}
            for unit in self.units(stage)
        }
        if self.model.architecture.tied and "head" in held and "embedding" not in held:
            held["head"]["table"] = self.local(self.model.units[0].parameters["table"])
        return held

    def local(self, parameter: Parameter) -> Tensor:
        """Return the part of a parameter that one tensor-parallel rank holds."""
        shape = parameter.shape
        if parameter.name.endswith(".table"):
            shape = (self.vocab, *shape[1:])
        whole = Tensor(shape, self.dtype)
        if parameter.split is None:
            return whole
        length = shape[parameter.split] // self.mesh.sizes["tp"]
        return whole.resized(parameter.split, length).placed(("tp",), Partitioned(parameter.split))


def _check_tensor_parallel(model: Model, tp: int) -> None:
    facts = model.architecture
    cut = {"attention heads": facts.heads}
    if facts.latent is None:
        cut["key/value heads"] = facts.kv_heads
    if len(facts.mixture_layers) < facts.layers:
        cut["the MLP's inner width"] = facts.intermediate
    if facts.experts:
        cut["an expert's inner width"] = facts.experts.width
        if facts.experts.shared_width:
            cut["the shared expert's inner width"] = facts.experts.shared_width
    valid = _divisors(gcd(*cut.values()))
    for what, number in cut.items():
        if number % tp:
            alone = _divisors(number) if number < 10**6 else valid
            whole = f" (of the whole model: {_listed(valid)})" if valid != alone else ""
            raise Refused(f"{number} ({what}) cannot be divided by tp={tp}: valid tp are {_listed(alone)}{whole}")


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
