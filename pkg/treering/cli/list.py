"""``treering list``: which collectives and algorithms there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treering.cli.options import COLLECTIVE, file_option, results_options
from treering.core.collective import ALL_TO_ALL, GATHER, SCATTER, Collective

if TYPE_CHECKING:
    from rich.table import Table

    from treering.core.algorithm import Algorithm, Parameter

REMARKS = {
    SCATTER: "The binomial tree is recursive halving cut at powers of two; halving cuts evenly. Both take the same rounds.",
    GATHER: "The binomial tree is recursive doubling cut at powers of two; halving cuts evenly. Both take the same rounds.",
    ALL_TO_ALL: "Recursive halving makes none, as every pair has data of its own; Bruck's algorithm stands in its place.",
}
"""Where a family truly makes no algorithm of its own for a collective."""


@click.command(epilog="Example: treering list allreduce")
@click.argument("collective", type=COLLECTIVE, required=False)
@results_options
@file_option
def command(collective: Collective | None, json: Path | None, force: bool) -> None:
    """List the collectives and their algorithms, or those of one COLLECTIVE in full.

    Rounds are messages that follow each other, on ranks that send one and receive one at a time. Sent is what the busiest rank
    sends, in multiples of the payload m. A lower bound is met for every number of ranks p, or only for powers of two.
    """
    from treering.cli.layout import console
    from treering.table import algorithms_of, collectives

    chosen = [collective] if collective else collectives()
    rows = [row(algorithm) for each in chosen for algorithm in algorithms_of(each)]
    for each in chosen:
        console().print(_table(each, [r for r in rows if r["collective"] == each.name]))
    if collective:
        _print_details(collective, rows)
    if json:
        from treering.measuring.results import header, write_json

        write_json(json, {**header(), "algorithms": rows}, force=force)


def row(algorithm: Algorithm) -> dict[str, Any]:
    """Gather all that the table says of an algorithm."""
    from treering.readers.bounds import met_by
    from treering.readers.claims import claim

    return {
        "collective": algorithm.collective.name, "algorithm": algorithm.name, "family": algorithm.family,
        "order": _order(algorithm), "requires": [requirement.text for requirement in algorithm.requires],
        "parameters": [_parameter(parameter) for parameter in algorithm.parameters],
        "rounds": str(claim(algorithm, "Rounds")), "sent": str(claim(algorithm, "Sent")), "meets": met_by(algorithm),
        "source": algorithm.source, "summary": algorithm.summary,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name, "default": parameter.default, "minimum": parameter.minimum, "meaning": parameter.meaning,
        "suits_the_payload": parameter.best is not None}


def _order(algorithm: Algorithm) -> str:
    if not algorithm.collective.reduces:
        return ""
    if algorithm.collective.repeats:
        return "commutative, idempotent"
    return "any operator" if algorithm.in_order else "commutative"


def _table(collective: Collective, rows: Sequence[dict[str, Any]]) -> Table:
    from treering.cli.layout import table
    from treering.readers.claims import MEANING

    operator = ["operator"] * collective.reduces
    made = table("algorithm", "family", *operator, "rounds", "sent /m", "meets the bound on", "source", title=collective.name)
    made.columns[0].no_wrap = True
    for each in rows:
        needs = [*each["requires"], *(f"{p['name']}={p['default']} (≥ {p['minimum']})" for p in each["parameters"])]
        name = "\n".join([each["algorithm"], *(f"  {need}" for need in needs)])
        meets = ", ".join(bound + ("" if always else " (p = 2^k)") for bound, always in each["meets"].items())
        order = [each["order"]] * collective.reduces
        made.add_row(name, each["family"], *order, each["rounds"], each["sent"], meets, each["source"])
    used = [f"{name}: {means}." for name, means in MEANING.items()
            if any(re.search(rf"\b{name}\b", f"{r['rounds']}, {r['sent']}") for r in rows)]
    made.caption = "\n".join([*used, *filter(None, [REMARKS.get(collective)])]) or None
    made.caption_justify = "left"
    return made


def _print_details(collective: Collective, rows: Sequence[dict[str, Any]]) -> None:
    """Say in a sentence what each algorithm does and its parameters mean, and how the lower bounds can be met."""
    from treering.readers.bounds import TOGETHER

    for each in rows:
        click.echo(f"{each['algorithm']}: {each['summary']}")
        for parameter in each["parameters"]:
            click.echo(f"  {parameter['name']}: {parameter['meaning']}")
    if collective.name in TOGETHER:
        click.echo(f"\nThe lower bounds on rounds and volume are met {TOGETHER[collective.name]}.")
