"""The search for the fewest nodes. It knows a yes or no for each number, and asks as rarely as it can.

More nodes are not always better: another number places every pod elsewhere, and a hot half hour comes or goes by
chance. So a number counts only if the next two hold as well. Below it, at least one number does not hold. A smaller
number that holds by luck, with one that does not right above it, is no answer: a cluster of that size is a gamble.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

NEIGHBOURS: Final = 2
"""Larger numbers that have to hold as well."""

_FINENESS: Final = 200
"""Numbers of nodes are searched to half a per cent: to one node below 400."""

_FIRST_STRIDE = 0.05


def step_at(n_nodes: int) -> int:
    """By how many nodes a large cluster is varied at least."""
    return max(n_nodes // _FINENESS, 1)


def fewest(holds: Callable[[int], bool], guess: int, *, least: int = 1, most: int) -> int | None:
    """The fewest nodes that hold, as do the next two numbers; None = not even `most` nodes.

    holds : is asked once for each number
    guess : where the search begins; it only costs time if it is wrong
    least : fewer are not asked about
    """
    known: dict[int, bool] = {}

    def ask(n_nodes: int) -> bool:
        if n_nodes not in known:
            known[n_nodes] = holds(n_nodes)
        return known[n_nodes]

    bracket = _bracket(ask, min(max(guess, least), most), least, most)
    if bracket is None:
        return None
    low, high = bracket
    step = step_at(high)
    while high - low > step:
        middle = (low + high) // 2
        low, high = (low, middle) if ask(middle) else (middle, high)
    while True:
        above = [min(high + number * step, most) for number in range(NEIGHBOURS + 1)]
        failing = [n_nodes for n_nodes in above if not ask(n_nodes)]
        if not failing:
            return high
        if failing[-1] == most:
            return None
        high = min(failing[-1] + step, most)


def _bracket(ask: Callable[[int], bool], guess: int, least: int, most: int) -> tuple[int, int] | None:
    """A number that does not hold and a larger one that does, in strides that double; None = none holds."""
    stride = max(int(guess * _FIRST_STRIDE), 1)
    if ask(guess):
        high = guess
        while high > least:
            low = max(high - stride, least)
            if not ask(low):
                return low, high
            high, stride = low, 2 * stride
        return least - 1, high
    low = guess
    while low < most:
        high = min(low + stride, most)
        if ask(high):
            return low, high
        low, stride = high, 2 * stride
    return None
