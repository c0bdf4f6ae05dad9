"""What docstrings claim: the formulas for rounds and volume, which conformance holds against the counter.

The docstring of every algorithm says ``Rounds:`` and ``Sent:`` (by the rank that sends most, in multiples of the payload m),
each in one of the forms::

    Rounds: ``size - 1``.
    Sent: at most ``2 * (size - 1) / size``.
    Rounds: ``floor_log2(size)`` for a power of two, else ``floor_log2(size) + 2``.

A formula is a Python expression; a ``/`` in it is exact. It may name ``size``, ``root``, the algorithm's parameters and what
is in `NAMES` and `FUNCTIONS`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..core.algorithm import Algorithm
from ..core.errors import ScheduleError
from ..core.group import Fold, factors

NAMES: Mapping[str, Callable[[int], int]] = {
    "active": lambda size: Fold(size).active,
    "branch": lambda size: _largest_branch(size),
}
"""What a formula may name that follows from the number of ranks."""

MEANING = {
    "active": "the largest power of two that is not more than p",
    "branch": "the ranks in the largest branch of a binomial tree",
    "digits": "of p and k, ⌊log_k p⌋, or 1 if k > p",
    "leaning": "of p and k, ⌈p/a⌉ - 1 for the largest power a of k that is not more than p, or 0 if k > p",
    "factors": "of p and k, those of p, not more than k unless they are prime",
    "powers": "of k and p, 1, k, k², … below p",
}
"""What these names stand for."""

FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "ceil_log2": lambda n: (n - 1).bit_length(), "floor_log2": lambda n: n.bit_length() - 1,
    "powers": lambda base, limit: [base ** i for i in range(limit.bit_length()) if base ** i < limit],
    "digits": lambda n, radix: Fold(n, max(2, min(n, radix))).digits,
    "leaning": lambda n, radix: Fold(n, max(2, min(n, radix))).leaning, "factors": factors,
    "max": max, "min": min, "sum": sum, "range": range, "Fraction": Fraction,
}

_FORMULA = r"(at most )?``([^`]+)``"
_CLAIM = re.compile(rf"{_FORMULA}(?:\s+for\s+a\s+power\s+of\s+two,\s+else\s+{_FORMULA})?\s*\.")


@dataclass(frozen=True)
class Formula:
    """One formula, exact or an upper bound.

    Examples
    --------
    >>> Formula("2 * (size - 1) / size", at_most=False).value(size=4)
    Fraction(3, 2)
    """

    text: str
    at_most: bool

    def value(self, **names: int) -> Fraction:
        """Evaluate for a size, a root and parameters."""
        tree = ast.fix_missing_locations(_ExactDivision().visit(ast.parse(self.text, mode="eval")))
        known = {**FUNCTIONS, **{name: of(names["size"]) for name, of in NAMES.items()}, **names, "__builtins__": {}}
        return Fraction(eval(compile(tree, f"<claim {self.text!r}>", "eval"), known))

    def agrees(self, counted: Fraction | int, **names: int) -> bool:
        """Whether what was counted is what the formula says."""
        return counted <= self.value(**names) if self.at_most else counted == self.value(**names)

    def __str__(self) -> str:
        """As people write it: p for the size, ⌈log2 p⌉ for the rounded logarithm."""
        text = re.sub(r"\bsize\b", "p", self.text)
        text = text.replace("ceil_log2(p)", "⌈log2 p⌉").replace("floor_log2(p)", "⌊log2 p⌋").replace("(p // 2)", "⌊p/2⌋")
        text = re.sub(r"(?<=[\d)]) \* (?=[(⌈⌊p])", "", text).replace(" / ", "/")
        return f"≤ {text}" if self.at_most else text


@dataclass(frozen=True)
class Claim:
    """What a docstring says of one figure: for powers of two, and for other numbers of ranks."""

    power_of_two: Formula
    otherwise: Formula

    def at(self, size: int) -> Formula:
        """The formula that speaks of a number of ranks."""
        return self.otherwise if size & (size - 1) else self.power_of_two

    def __str__(self) -> str:
        if self.power_of_two == self.otherwise:
            return str(self.otherwise)
        return f"{self.power_of_two} (p = 2^k), {self.otherwise}"


def claim(algorithm: Algorithm, figure: str) -> Claim:
    """What an algorithm's docstring claims for ``"Rounds"`` or ``"Sent"``.

    Raises
    ------
    ScheduleError
        If it claims nothing, or in words that are not understood.
    """
    text = algorithm.function.__doc__ or ""
    _, found, rest = text.partition(f"{figure}:")
    match = _CLAIM.match(rest.lstrip())
    if not found or match is None:
        raise ScheduleError(f"{algorithm}: its docstring must say {figure}: ``formula``.")
    at_most, formula, else_at_most, else_formula = (" ".join(part.split()) if part else part for part in match.groups())
    first = Formula(formula, bool(at_most))
    return Claim(first, Formula(else_formula, bool(else_at_most)) if else_formula else first)


def _largest_branch(size: int) -> int:
    """The branches hold 1, 2, 4, … ranks, but for the last, which holds the rest."""
    last = 1 << (size - 1).bit_length() - 1
    return max(size - last, last // 2)


class _ExactDivision(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.Name("Fraction", ast.Load()), [node.left, node.right], [])
