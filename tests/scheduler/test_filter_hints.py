"""Whatever makes a filter accept a node that it rejected, its hint has welcomed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from base.arrays import Bools
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.cluster_events import ClusterEvent, Hint
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, Filter, rejected
from placement.index.index import INDEXED_KINDS, PlacementIndex
from scheduler.profile import PodsToPlace
from scheduler.queue_events import ClusterFollower
from scorer.scorer import Scorer
from testing.servers.cluster_objects import Manifest
from tests.differential.our_filters import decoded
from tests.placement.random_cluster import random_cluster


class Listening:
    """In place of the queue: remembers events."""

    def __init__(self) -> None:
        self.events: list[ClusterEvent] = []

    def happened(self, event: ClusterEvent) -> None:
        self.events.append(event)

    def put(self, pod: PodInfo) -> None:
        """Nobody places these pods."""

    def remove(self, uid: str) -> None:
        """Nobody places these pods."""


def manifests_of(seed: int) -> dict[Kind, list[Manifest]]:
    made = random_cluster(Random(seed), 12)
    objects: dict[Kind, list[Manifest]] = {kind: [] for kind in Kind}
    by_kind = {kind.singular: kind for kind in Kind}
    namespaces = [
        {"kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}
        for name, labels in made.namespaces.items()
    ]
    for one in (*namespaces, *made.nodes, *made.others, *made.sitting, *made.probes):
        objects[by_kind[one["kind"]]].append(one)
    for number, pod in enumerate(objects[Kind.PODS]):
        pod["metadata"]["uid"] = f"uid-{seed}-{number}"
        pod["metadata"].setdefault("namespace", "default")
    return objects


class World:
    def __init__(self, objects: dict[Kind, list[ApiObject]]) -> None:
        self.scorer, self.queue = Scorer(clock=lambda: 0.0), Listening()
        with self.scorer.tables.reading() as cluster:
            self.view = ClusterView(cluster, PlacementIndex(cluster.state))
            self.scorer.tables.attach((), self.view.index)
            follower = ClusterFollower(cluster, self.view.index, self.queue, PodsToPlace(frozenset({"nobody"})))  # type: ignore[arg-type]
            self.scorer.tables.attach(INDEXED_KINDS, follower)
        for kind, items in objects.items():
            self.scorer.tables.replace(kind, items)

    def accepted(self, one: Filter, pod: PodInfo) -> Bools:
        return self.view.state.alive & ~rejected(one.filter(pod, self.view), self.view.n_rows)


def something_happens(world: World, rng: Random, spare: dict[Kind, list[ApiObject]]) -> None:
    """One change: a pod goes or comes, a node becomes another, an object of storage changes."""
    state, scorer = world.view.state, world.scorer
    seated = [state.pods[uid] for uid in state.seat_of]
    what = rng.random()
    if what < 0.35 and seated:
        scorer.tables.delete(Kind.PODS, rng.choice(seated))
    elif what < 0.5:
        scorer.tables.put(Kind.PODS, rng.choice([p for p in spare[Kind.PODS] if isinstance(p, PodInfo) and p.node]))
    elif what < 0.85:
        other = rng.choice(spare[Kind.NODES])
        assert isinstance(other, NodeInfo)
        scorer.tables.put(Kind.NODES, other)
    else:
        kind = rng.choice([kind for kind in INDEXED_KINDS if spare[kind]] or [Kind.NODES])
        scorer.tables.put(kind, rng.choice(spare[kind]))


def check(seed: int) -> int:
    """How often a filter changed its mind."""
    rng = Random(seed)
    world, spare = World(decoded(manifests_of(seed))), decoded(manifests_of(seed + 10_000))
    probes = [one for one in world.view.state.pods.values() if not one.node]
    filters = standard_filters()
    changed = 0
    for _ in range(12):
        before = {(pod.uid, one.name): world.accepted(one, pod) for pod in probes for one in filters}
        names = list(world.view.state.names)
        world.queue.events.clear()
        something_happens(world, rng, spare)
        for pod in probes:
            if pod.uid not in world.view.state.pods:
                continue
            for one in filters:
                after = world.accepted(one, pod)
                was = np.zeros(len(after), dtype=bool)
                was[: len(names)] = before[pod.uid, one.name]
                if not (after & ~was).any() or one.name == "SchedulingGates":
                    continue
                changed += 1
                events = [event for event in world.queue.events if event.kind in one.woken_by]
                assert any(one.hint(pod, event) is Hint.QUEUE for event in events), (
                    one.name,
                    [event.kind for event in world.queue.events],
                    pod,
                )
    return changed


@pytest.mark.parametrize("seed", range(15))
def test_a_filter_that_changes_its_mind_had_a_hint(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_on_many_clusters(seed: int) -> None:
    check(seed)
