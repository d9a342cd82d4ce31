"""The search for the cluster's metrics store: whom to ask, and whom to believe. All I/O is the probe's.

candidates, best first --> ask the first five --> knows the nodes --> taken
                                  |-- no answer, or other nodes --> said in one line, and the next one

Each is asked in a thread of its own: the next one begins as soon as those before it have answered, or after a moment,
so that one that hangs delays a service's start by seconds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from base.errors import ForecastError
from forecast_scheduler.discovery.known_nodes import KnownNodes
from forecast_scheduler.discovery.ranking import StoreCandidate
from trainer.prometheus.http_answer import NoPrometheusApi

MOST_ASKED: Final = 5
"""Services. With two paths each, a search sends at most ten queries."""

_LEAST_SHARE: Final = 0.5
"""Of the nodes that a store must know: some have just joined or are virtual, and another cluster's store knows none."""

_ENOUGH_SHARE: Final = 0.9
"""With which no other store is asked."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of a search.

    in_all     : after which it ends with what there is
    between    : after which the next candidate is asked beside one that has not answered
    for_better : for which a better one may still answer after a store is found
    """

    in_all: float
    between: float
    for_better: float


PACE: Final = Pace(in_all=12.0, between=1.0, for_better=3.0)
"""A store names 5,000 nodes in a second; a service that starts and waits much longer is restarted by its probe."""

_Answer: TypeAlias = "tuple[str, KnownNodes] | ForecastError"

Probe = Callable[[StoreCandidate, str], KnownNodes]
"""Asks NODES_QUERY of a candidate below a path. Raises ForecastError, NoPrometheusApi if there is none."""


@dataclass(frozen=True, slots=True)
class FoundStore:
    """A store that knows the cluster's nodes. path: before /api/v1."""

    candidate: StoreCandidate
    path: str
    nodes: KnownNodes


@dataclass(frozen=True, slots=True)
class SearchResult:
    """found: None = no store; in_vain: one line for each candidate that was asked and not taken."""

    found: FoundStore | None
    in_vain: tuple[str, ...]


def search(candidates: Sequence[StoreCandidate], probe: Probe, pace: Pace = PACE) -> SearchResult:
    """Ask the best candidates until one knows nearly all nodes and no other cluster's."""
    asked, began = candidates[:MOST_ASKED], time.monotonic()
    answers: SimpleQueue[tuple[int, _Answer]] = SimpleQueue()
    known: dict[int, _Answer] = {}
    n_begun, sure_at = 0, math.inf
    while len(known) < len(asked) and not any(
        _is_sure(known.get(place)) and all(before in known for before in range(place)) for place in range(n_begun)
    ):
        now = time.monotonic()
        until = min(began + pace.in_all, sure_at + pace.for_better)
        if now >= until:
            break
        if n_begun < len(asked) and sure_at == math.inf:
            if len(known) == n_begun or now >= began + n_begun * pace.between:
                _begin(n_begun, asked[n_begun], probe, answers)
                n_begun += 1
                continue
            until = min(until, began + n_begun * pace.between)
        with suppress(Empty):
            place, answer = answers.get(timeout=max(until - now, 0.0))
            known[place] = answer
            if _is_sure(answer):
                sure_at = min(sure_at, time.monotonic())
    return _judged([(one, known.get(place)) for place, one in enumerate(asked[:n_begun])], time.monotonic() - began)


def _begin(place: int, candidate: StoreCandidate, probe: Probe, answers: SimpleQueue[tuple[int, _Answer]]) -> None:
    def work() -> None:
        try:
            answers.put((place, _ask(candidate, probe)))
        except ForecastError as error:
            answers.put((place, error))

    # A daemon: what still waits for a candidate that hangs does not hold up the end of the program.
    threading.Thread(target=work, name=f"probe-{candidate}", daemon=True).start()


def _judged(asked: Sequence[tuple[StoreCandidate, _Answer | None]], seconds: float) -> SearchResult:
    """The store, and why each other one is not. An answer of None: there was none in time."""
    passing: list[FoundStore] = []
    in_vain: list[str] = []
    for candidate, answer in asked:
        if answer is None:
            in_vain.append(f"{candidate} did not answer within {seconds:.0f} s")
        elif isinstance(answer, ForecastError):
            in_vain.append(f"{candidate} is no metrics store that can be read: {answer}")
        elif answer[1].share < _LEAST_SHARE:
            in_vain.append(f"{candidate} is not the metrics store of this cluster: {answer[1]}")
        else:
            passing.append(FoundStore(candidate, *answer))
    # Of several that measure us in part or others too, the first of those with the largest share; `max` keeps order.
    found = max(passing, key=lambda one: (_is_surely_ours(one.nodes), one.nodes.share), default=None)
    in_vain += [f"{one.candidate} was not taken: {one.nodes}" for one in passing if one is not found]
    return SearchResult(found, tuple(in_vain))


def _is_sure(answer: _Answer | None) -> bool:
    return isinstance(answer, tuple) and _is_surely_ours(answer[1])


def _is_surely_ours(nodes: KnownNodes) -> bool:
    return nodes.share >= _ENOUGH_SHARE and nodes.others + nodes.namesakes <= nodes.known


def _ask(candidate: StoreCandidate, probe: Probe) -> tuple[str, KnownNodes]:
    """Ask below each path until one has an API. Raises ForecastError."""
    *first, last = candidate.paths
    for path in first:
        try:
            return path, probe(candidate, path)
        except NoPrometheusApi:
            continue
    return last, probe(candidate, last)
