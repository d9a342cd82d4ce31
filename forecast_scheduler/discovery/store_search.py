"""The search for the cluster's metrics store: whom to ask, and whom to believe. Does no I/O itself.

candidates, best first --> ask the first five --> knows the nodes --> taken
                                  |-- no answer, or other nodes --> said in one line, and the next one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

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


def search(candidates: Sequence[StoreCandidate], probe: Probe) -> SearchResult:
    """Ask the best candidates, one after the other, until one knows nearly all nodes and no other cluster's."""
    passing: list[FoundStore] = []
    in_vain: list[str] = []
    for candidate in islice(candidates, MOST_ASKED):
        try:
            path, nodes = _ask(candidate, probe)
        except ForecastError as error:
            in_vain.append(f"{candidate} is no metrics store that can be read: {error}")
            continue
        if nodes.share < _LEAST_SHARE:
            in_vain.append(f"{candidate} is not the metrics store of this cluster: {nodes}")
            continue
        passing.append(FoundStore(candidate, path, nodes))
        if _is_surely_ours(nodes):
            break
    # Of several that measure us in part or others too, the first of those with the largest share; `max` keeps order.
    found = max(passing, key=lambda one: (_is_surely_ours(one.nodes), one.nodes.share), default=None)
    in_vain += [f"{one.candidate} was not taken: {one.nodes}" for one in passing if one is not found]
    return SearchResult(found, tuple(in_vain))


def _is_surely_ours(nodes: KnownNodes) -> bool:
    return nodes.share >= _ENOUGH_SHARE and nodes.others <= nodes.known


def _ask(candidate: StoreCandidate, probe: Probe) -> tuple[str, KnownNodes]:
    """Ask below each path until one has an API. Raises ForecastError."""
    *first, last = candidate.paths
    for path in first:
        try:
            return path, probe(candidate, path)
        except NoPrometheusApi:
            continue
    return last, probe(candidate, last)
