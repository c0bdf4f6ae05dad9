"""Which framework's variant of each strategy a ledger counts, in a line each."""

from __future__ import annotations

from collections.abc import Iterator

from .job import Job
from .mesh import Group


def variants(job: Job) -> Iterator[tuple[str, str]]:
    """Yield, for each axis in use, what is counted on it."""
    sizes = job.mesh.sizes
    if sizes["tp"] > 1:
        yield "tp", "Megatron-LM column/row, without sequence parallelism; vocabulary-parallel cross-entropy, unfused"
    if sizes["fsdp"] > 1:
        kept = "gathered once a step (torchtitan, with pp)" if sizes["pp"] > 1 else "gathered in every microbatch"
        layers = "layers resharded, root kept" if job.reshard and sizes["pp"] == 1 else "kept between forward and backward"
        yield "fsdp", f"PyTorch FSDP2, a unit per layer and the root; {kept}; {layers}; dim 0 padded"
    if sizes["dp"] > 1 and sizes["fsdp"] > 1:
        yield "dp", "HSDP: gradient shards all-reduced in the last microbatch"
    elif sizes["dp"] > 1:
        yield "dp", "PyTorch DDP buckets of 1 MiB, then 25 MiB, in arrival order; last microbatch only; not the first step"
    if sizes["pp"] > 1:
        yield "pp", "1F1B, equal stages; every tp rank sends the whole activation"


def groups(job: Job, axis: str, shown: int = 4) -> str:
    """Say who is in which group of an axis: ``stride 2: {0, 2} {1, 3}``."""
    every = job.mesh.groups(Group((axis,)))
    members = ["{" + _members(group) + "}" for group, _ in zip(every, range(shown), strict=False)]
    number = job.mesh.size // job.mesh.sizes[axis]
    more = f" … ({number} groups)" if number > shown else ""
    return f"stride {job.mesh.stride(axis)}: {' '.join(members)}{more}"


def _members(group: list[int]) -> str:
    return ", ".join(map(str, group)) if len(group) <= 8 else f"{group[0]}, {group[1]} … {group[-1]}"
