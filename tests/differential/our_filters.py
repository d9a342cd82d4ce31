"""What our own filters say of pods in a cluster that was read from the API server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from cluster.live_tables import LiveTables
from kube.decoding.decoding import ApiObject, Kind, decode_list
from kube.objects.kubernetes_version import COMPARED
from kube.objects.objects import PodInfo
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.scores.node_score import NodeScore
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.binaries import kubernetes_version

VERSION = next(one for one in COMPARED if str(one) == kubernetes_version())
"""Of the programs that these tests run."""

KINDS = (Kind.NODES, *INDEXED_KINDS, Kind.PODS)


@dataclass(frozen=True, slots=True)
class OurVerdict:
    """Nodes that pass all filters; for the others each (filter, reason) that rejects them."""

    passing: frozenset[str]
    reasons: Mapping[str, tuple[tuple[str, str], ...]]


def decoded(objects: Mapping[Kind, Sequence[Manifest]]) -> dict[Kind, list[ApiObject]]:
    """The objects as the program reads them from a list."""
    found = {}
    for kind, items in objects.items():
        body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": list(items)}).encode()
        page = decode_list(kind, body, VERSION)
        assert not page.undecodable, page.undecodable
        found[kind] = page.objects
    return found


class Tables:
    """Our tables as the program keeps them. They may follow one cluster after the other."""

    def __init__(self) -> None:
        self._tables = LiveTables(clock=lambda: 0.0)
        self._tables.follow_version(VERSION)
        with self._tables.reading() as cluster:
            self._index = PlacementIndex(cluster.state)
        self._tables.attach(INDEXED_KINDS, self._index)

    def replace(self, objects: Mapping[Kind, Sequence[ApiObject]]) -> None:
        """These are all objects there are."""
        for kind, items in objects.items():
            self._tables.replace(kind, items)

    def put_in_any_order(self, objects: Mapping[Kind, Sequence[ApiObject]], rng: Random) -> None:
        """They arrive one by one, pods before their nodes and claims before their volumes."""
        arriving = [(kind, item) for kind, items in objects.items() for item in items]
        rng.shuffle(arriving)
        for kind, item in arriving:
            self._tables.put(kind, item)

    def verdict(self, pod: PodInfo) -> OurVerdict:
        """Where a pod may go by all standard filters."""
        with self._tables.reading() as cluster:
            view = ClusterView(cluster, self._index)
            reasons: dict[str, list[tuple[str, str]]] = {
                name: [] for name, alive in zip(view.state.names, view.state.alive.tolist(), strict=True) if alive
            }
            for one in standard_filters():
                for rejection in one.filter(pod, view):
                    for row in (rejection.nodes & view.state.alive).nonzero()[0].tolist():
                        reasons[view.state.names[row]].append((one.name, rejection.reason))
        return OurVerdict(
            passing=frozenset(name for name, why in reasons.items() if not why),
            reasons={name: tuple(why) for name, why in reasons.items() if why},
        )

    def scores(self, score: NodeScore, pod: PodInfo, nodes: Sequence[str]) -> dict[str, int]:
        """What a standard score says of nodes that passed."""
        with self._tables.reading() as cluster:
            view = ClusterView(cluster, self._index)
            rows = np.array([view.state.row_of[name] for name in nodes], dtype=np.int64)
            return dict(zip(nodes, score.score(pod, view, rows).tolist(), strict=True))
