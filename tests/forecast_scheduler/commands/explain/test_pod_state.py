"""`explain` names the state of a pod, why it is in it, and what may be typed about it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from forecast_scheduler.commands.explain.pod_state import SeenLease, State, WaitingClaim, WaitingFacts, state_of_pod
from kube.decoding.decoding import decode_pod
from kube.leader_election.record import LeaseRecord
from placement.gate_exemptions import ADVICE
from placement.pod_groups.group_of_pod import GROUP_LABEL
from scheduler.scheduling_answers import QueuedPod
from tenants.elastic_quota import ElasticQuota
from tests.forecast_scheduler.made_cluster import made_pod, seated

CREATED = datetime.fromisoformat("2026-10-13T12:00:00Z").timestamp()
ALIVE = SeenLease("ours/lease", LeaseRecord("replica-1", 4.0, "", "", 0, ""), age=1.0)
DEAD = replace(ALIVE, age=90.0)
OURS: dict[str, Any] = {"schedulingGates": [{"name": ADVICE}]}
THEIRS: dict[str, Any] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}, {"name": ADVICE}]}
QUOTA = ElasticQuota("shop", "of-shop")


def note(**said: Any) -> dict[str, Any]:
    return {"annotations": {ADVICE: json.dumps(said)}}


def waiting(nominated: str = "", *, scheduler: str = "default-scheduler", **more: Any) -> dict[str, Any]:
    pod = made_pod("p", scheduler=scheduler, **more)
    if nominated:
        pod["status"]["nominatedNodeName"] = nominated
    return pod


def facts_of(pod: dict[str, Any], *, after: float = 14.0, **known: Any) -> WaitingFacts:
    facts = WaitingFacts(
        pod=decode_pod(pod),
        now=CREATED + after,
        advisor=ALIVE,
        loops=ALIVE,
        our_names=frozenset({"forecast-scheduler"}),
        namespace_labels={ADVICE: "advise"},
    )
    return replace(facts, **known)


def queued(*rejected_by: str) -> QueuedPod:
    return QueuedPod(
        namespace="shop", name="p", uid="uid-p", profile="forecast-scheduler", part="unschedulable", priority=0,
        since=datetime.fromtimestamp(CREATED, UTC), attempts=3, rejected_by=rejected_by, message="what the queue says",
    )  # fmt: skip


GANG: dict[str, Any] = {"labels": {GROUP_LABEL: "g"}}
CASES: list[tuple[State, str, WaitingFacts]] = [
    (State.HELD, "label forecast-scheduler.io/advice=advise of namespace shop", facts_of(waiting(**OURS))),
    (State.HELD, "label forecast-scheduler.io/advice=prefer of the pod",
     facts_of(waiting(**OURS, metadata={"labels": {ADVICE: "prefer"}}))),
    (State.HELD, "namespace shop says off by now", facts_of(waiting(**OURS), namespace_labels={ADVICE: "off"})),
    (State.HELD, "no label asks for it", facts_of(waiting(**OURS), namespace_labels={})),
    (State.HELD, "could not be read", facts_of(waiting(**OURS), namespace_labels=None)),
    (State.HELD, "advisor is alive: replica-1 renewed its Lease 1 s ago", facts_of(waiting(**OURS))),
    (State.HELD, "no advisor is alive: replica-1 renewed its Lease 2 min ago", facts_of(waiting(**OURS), advisor=DEAD)),
    (State.HELD, "there is no Lease a/b", facts_of(waiting(**OURS), advisor=SeenLease("a/b"))),
    (State.HELD, "not known whether a process of the advisor is alive: 403",
     facts_of(waiting(**OURS), advisor=SeenLease("a/b", unread="403"))),
    (State.HELD, "neither advisor nor webhook removes the gate", facts_of(waiting(**OURS), after=40.0)),
    (State.HELD, "what the queue says", facts_of(waiting(**OURS), queued=queued())),
    (State.QUOTA, "until ElasticQuota shop/of-shop admits it", facts_of(waiting(**OURS), quotas=(QUOTA,))),
    (State.HELD, "no advisor is alive", facts_of(waiting(**OURS), quotas=(QUOTA,), advisor=DEAD)),
    (State.HELD_BY_OTHERS, "kueue.x-k8s.io/admission, set by kueue",
     facts_of(waiting(**THEIRS), gate_setters={"kueue.x-k8s.io/admission": "kueue"})),
    (State.HELD_BY_OTHERS, "our gate forecast-scheduler.io/advice is there too", facts_of(waiting(**THEIRS))),
    (State.RESERVED, "PersistentVolumeClaim data is not bound: it waits for its volume on node-3",
     facts_of(waiting(), claims=(WaitingClaim("PersistentVolumeClaim", "data", node="node-3"),))),
    (State.RESERVED, "its devices are reserved for this pod",
     facts_of(waiting(), claims=(WaitingClaim("ResourceClaim", "gpu", is_reserved=True),))),
    (State.ADVISED, "our advisor named node-2: default-scheduler has not bound it yet",
     facts_of(waiting("node-2", metadata=note(node="node-2")))),
    (State.ADVISED, "it prefers node-2 (prefer)", facts_of(waiting(metadata=note(node="node-2", mode="prefer")))),
    (State.NOMINATED, "default-scheduler makes room for it on node-2; our advice was node-1",
     facts_of(waiting("node-2", metadata=note(node="node-1")))),
    (State.GANG, "waits for members: 1 of 3 pods of PodGroup g exist",
     facts_of(waiting(scheduler="forecast-scheduler", metadata=GANG), reason="Unschedulable",
              message="waits for members: 1 of 3 pods of PodGroup g exist")),
    (State.QUOTA, "what the queue says",
     facts_of(waiting(scheduler="forecast-scheduler"), queued=queued("ElasticQuota"))),
    (State.QUOTA, "tenant a may use 2 cores at most",
     facts_of(waiting(scheduler="forecast-scheduler"), quotas=(QUOTA,), reason="Unschedulable",
              message="tenant a may use 2 cores at most and uses 0 cores, the pod asks for 3 cores")),
    (State.PAUSED, "starts at 03:00", facts_of(waiting(), reason="WaitingForValley", message="starts at 03:00")),
    (State.UNSCHEDULABLE, "0/3 nodes", facts_of(waiting(), reason="Unschedulable", message="0/3 nodes")),
    (State.UNSCHEDULABLE, "released without advice: no node fits",
     facts_of(waiting(metadata=note(node=None, because="no node fits")), reason="Unschedulable", message="0/3 nodes")),
    (State.QUEUED, "no scheduler has said anything of it yet", facts_of(waiting())),
    (State.QUEUED, "no `schedule` is alive", facts_of(waiting(scheduler="forecast-scheduler"), loops=DEAD)),
    (State.PLACED, "our advice was followed", facts_of(seated(waiting(metadata=note(node="node-2")), "node-2"))),
    (State.PLACED, "not followed: it named node-1", facts_of(seated(waiting(metadata=note(node="node-1")), "node-2"))),
    (State.PLACED, "without our advice: there is no usable forecast",
     facts_of(seated(waiting(metadata=note(node=None, because="there is no usable forecast")), "node-2"))),
    (State.PLACED, "its kubelet has not started", facts_of(waiting(nodeName="node-2"))),
    (State.FINISHED, "phase Failed: Evicted, on node-2",
     facts_of(waiting(nodeName="node-2") | {"status": {"phase": "Failed", "reason": "Evicted"}})),
    (State.TERMINATING, "it ends on node-2",
     facts_of(waiting(nodeName="node-2", metadata={"deletionTimestamp": "2026-10-13T12:00:00Z"}))),
]  # fmt: skip


@pytest.mark.parametrize(("state", "sentence", "facts"), CASES, ids=[f"{one[0].name}-{one[1][:30]}" for one in CASES])
def test_a_pod_is_in_a_state_for_a_reason(state: State, sentence: str, facts: WaitingFacts) -> None:
    found = state_of_pod(facts)
    assert found.state is state
    assert any(sentence in one for one in found.because), found.because
    assert found.to_json()["name"] == state.value
    assert found.lines()[0].startswith(f"state of shop/p: {state.value}")


def test_each_state_is_reached() -> None:
    assert {state for state, _, _ in CASES} == set(State)


def test_a_held_pod_says_since_when_and_how_to_release_it() -> None:
    found = state_of_pod(facts_of(waiting(**OURS)))
    assert found.lines()[0] == "state of shop/p: held for advice for 14 s"
    release, release_all, hold_none = found.commands
    patch = json.loads(release.split("'")[1])
    assert patch == {"spec": {"schedulingGates": [{"$patch": "delete", "name": ADVICE}]}}
    assert release.startswith("kubectl -n shop patch pod p --type strategic -p ")
    assert release_all.startswith("forecast-scheduler advise --release ")
    assert hold_none.startswith("kubectl label --overwrite namespace shop forecast-scheduler.io/advice=off ")


def test_what_others_wrote_cannot_break_a_terminal_or_the_reading() -> None:
    hostile = facts_of(waiting(metadata={"annotations": {ADVICE: "["}}), message="red \x1b[31m", reason="Unschedulable")
    found = state_of_pod(hostile)
    assert found.state is State.UNSCHEDULABLE
    assert "\x1b" not in "".join(found.lines())
