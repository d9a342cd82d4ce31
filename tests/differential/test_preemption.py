"""Our preemption against a real kube-scheduler: the same node and the same victims, in random full clusters.

random cases --> API server --> kube-scheduler --> nominatedNodeName, pods that are deleted
                     |
                     +--> our decoding, tables, search --> the same
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from kube.decoding.decoding import Kind
from kube.decoding.watched_kinds import decode_page
from kube.objects.objects import NodeInfo, PodInfo
from placement.disruption_budgets import WATCHED_BUDGETS, DisruptionBudget
from placement.plugins import Nomination
from scheduler.loop_settings import PreemptionOptions
from testing.constants import with_constants
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from tests.differential.our_filters import decoded
from tests.differential.preemption_cases import CLASSES, Case, random_case
from tests.scheduler.preemption.made_up import World

SECONDS = 60.0
CASES_AT_ONCE = 12
"""Fewer than 100 nodes: kube-scheduler tries all of them."""


@dataclass(frozen=True)
class Outcome:
    """node: '' = none; victims: of the case, in any order."""

    node: str
    victims: frozenset[str]


class RealPreemption:
    """A control plane, and a kube-scheduler while cases are decided."""

    def __init__(self, plane: ControlPlane) -> None:
        self._writer = ClusterWriter(plane)
        self._writer.create_many(CLASSES)
        self._scheduler = KubeScheduler(plane, verbosity=0)

    def close(self) -> None:
        self._scheduler.kill()
        self._writer.close()

    def write(self, cases: Sequence[Case]) -> None:
        """In place of those before."""
        for plural in ("pods", "poddisruptionbudgets", "nodes"):
            self._writer.delete_many(self._writer.list_all(plural))
        self._writer.create_many(one for case in cases for one in (*case.nodes, *case.budgets))
        self._writer.create_many(one for case in cases for one in case.sitting)
        self._writer.create_many(case.preemptor for case in cases)

    def listed(self, plural: str) -> list[Manifest]:
        return self._writer.list_all(plural)

    def decide(self, expected: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """What kube-scheduler does. expected: only says how long to wait for further victims, which come after the
        nomination."""
        try:
            self._scheduler.start()
            deadline = time.monotonic() + SECONDS
            while not self._is_decided(found := self._outcomes(), expected) and time.monotonic() < deadline:
                time.sleep(0.1)
            return found
        finally:
            self._scheduler.kill()

    def _is_decided(self, found: Mapping[str, Outcome | None], expected: Mapping[str, Outcome]) -> bool:
        return all((one := found.get(name)) is not None and one.victims >= expected[name].victims for name in expected)

    def _outcomes(self) -> dict[str, Outcome]:
        pods = self.listed("pods")
        going: dict[str, set[str]] = {}
        for one in pods:
            if "deletionTimestamp" in one["metadata"]:
                going.setdefault(one["metadata"]["labels"]["case"], set()).add(one["metadata"]["name"])
        found = {}
        for one in pods:
            name, status = one["metadata"]["name"], one["status"]
            if name != one["metadata"]["labels"]["case"]:
                continue
            said = [c for c in status.get("conditions", ()) if c["type"] == "PodScheduled" and c["status"] == "False"]
            node = status.get("nominatedNodeName", "")
            assert "nodeName" not in one["spec"], f"{name} needed no preemption"
            if node or any("preemption: 0/" in c.get("message", "") for c in said):
                found[name] = Outcome(node, frozenset(going.get(name, ())))
        return found


@pytest.fixture(scope="module")
def real() -> Iterator[RealPreemption]:
    with control_plane() as plane:
        running = RealPreemption(plane)
        yield running
        running.close()


def test_12_preemptors_drive_out_whom_kube_scheduler_drives_out(real: RealPreemption) -> None:
    outcomes = _all_agree(real, range(1))
    assert sum(1 for one in outcomes if one.node) >= 8
    assert max(len(one.victims) for one in outcomes) > 1


@pytest.mark.long
def test_240_preemptors_drive_out_whom_kube_scheduler_drives_out(real: RealPreemption) -> None:
    outcomes = _all_agree(real, range(100, 120))
    assert len(outcomes) == 240
    assert sum(1 for one in outcomes if not one.node) > 5
    assert len(Counter(len(one.victims) for one in outcomes)) > 4


def _all_agree(real: RealPreemption, seeds: range) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for seed in seeds:
        rng = Random(seed)
        cases = [random_case(rng, f"case-{i}") for i in range(CASES_AT_ONCE)]
        assert sum(len(case.nodes) for case in cases) < 100
        real.write(cases)
        ours = _ours(real, cases)
        theirs = real.decide(ours)
        assert theirs == ours, f"seed {seed}: " + "; ".join(
            f"{name}: kube-scheduler {theirs.get(name)}, ours {one}"
            for name, one in ours.items()
            if theirs.get(name) != one
        )
        outcomes += ours.values()
    return outcomes


def _ours(real: RealPreemption, cases: Sequence[Case]) -> dict[str, Outcome]:
    """What we would do, from what the API server has."""
    objects = decoded({Kind.NODES: real.listed("nodes"), Kind.PODS: real.listed("pods")})
    nodes = [one for one in objects[Kind.NODES] if isinstance(one, NodeInfo)]
    pods = {one.name: one for one in objects[Kind.PODS] if isinstance(one, PodInfo)}
    body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": real.listed("poddisruptionbudgets")}).encode()
    budgets: list[DisruptionBudget] = decode_page(WATCHED_BUDGETS, body).objects
    assert sum(one.allowed for one in budgets) > 0
    world = World(nodes, list(pods.values()), budgets, options=with_constants(PreemptionOptions(), protect_started=0.0))
    outcomes = {}
    for case in cases:
        answer = world.asked(pods[case.name])
        outcomes[case.name] = (
            Outcome(answer.node, frozenset(victim.name for victim in answer.victims))
            if isinstance(answer, Nomination)
            else Outcome("", frozenset())
        )
    return outcomes
