"""What the benchmarks share: a command line, rounds in turn, ratios within a round, limits and the words for them.

Machines are noisy. So each configuration is measured beside its rival in the same round, and the median of the rounds'
ratios is judged. The figures themselves and their tables stay with each benchmark.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import timeit
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TypeVar

from testing.processes.process_figures import peak_bytes

K = TypeVar("K")
T = TypeVar("T")


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Return a parser whose `--help` shows a module's docstring as it is written."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def numbers(text: str) -> list[int]:
    """Return the numbers of an option such as `--nodes 1000,5000`. Raises ValueError."""
    return [int(one) for one in text.split(",")]


def in_turn(configurations: Iterable[K], rounds: int, measure: Callable[[K, int], T]) -> dict[K, list[T]]:
    """Measure every configuration in every round, every second round backwards, so that a drift favours none.

    measure : called with a configuration and the number of the round, from 0
    """
    found: dict[K, list[T]] = {one: [] for one in configurations}
    for number in range(rounds):
        for one in found if number % 2 == 0 else reversed(found):
            found[one].append(measure(one, number))
    return found


def ratios(ours: Sequence[T], theirs: Sequence[T], figure: Callable[[T], float]) -> list[float]:
    """Return ours / theirs of each round."""
    return [figure(one) / figure(other) for one, other in zip(ours, theirs, strict=True)]


def median_ratio(ours: Sequence[T], theirs: Sequence[T], figure: Callable[[T], float]) -> float:
    """Return the median over the rounds of ours / theirs."""
    return median(ratios(ours, theirs, figure))


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Return the least and the most, for a table: "(812 to 1043)"."""
    return f"({min(values):.{digits}f} to {max(values):.{digits}f})"


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed (nearest rank)."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def microseconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median microseconds of one call."""
    return 1e6 * median(timeit.repeat(call, number=1, repeat=repeats))


def peak_gib() -> float:
    """Return the peak resident memory of this process alone: `ru_maxrss` of a child begins at its parent's size."""
    return peak_bytes(os.getpid()) / 2**30


def machine_load() -> str:
    """Return the load of the machine, which a reader needs to judge a figure by."""
    return f"load of the machine now {os.getloadavg()[0]:.1f}"


def outcome(holds: bool) -> str:
    """Return the word for a limit that holds or does not."""
    return "holds" if holds else "MISSED"


def print_aims(aims: Iterable[tuple[str, bool]]) -> bool:
    """Print each aim with the word for whether it holds; returns whether all do."""
    found = list(aims)
    for text, holds in found:
        print(f"{outcome(holds)}  {text}")
    return all(holds for _, holds in found)


def finish(holds: bool) -> None:
    """End the process: status 0 if all limits hold, else 1."""
    sys.exit(0 if holds else 1)
