"""kube-scheduler v1.36 understands every answer of ours."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from extender.answer_settings import ExtenderServiceOptions
from extender.service.extender_app import create_app
from testing.servers.cluster_objects import ClusterWriter, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler, extender
from tests.extender.real.conftest import NODES, QUICK, placed, wait_until_placed
from tests.extender.service.simple_extender import SimpleExtender
from tests.serving.served import served

PATIENT = ExtenderServiceOptions(deadline=20)
VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": 5}


@pytest.fixture
def simple() -> SimpleExtender:
    return SimpleExtender()


@pytest.fixture
def url(simple: SimpleExtender) -> Iterator[str]:
    with served(create_app(simple, PATIENT)) as url:
        yield url


def _outcomes(url: str, outcome: str) -> Counter[str]:
    """Requests by verb."""
    found: Counter[str] = Counter()
    for line in httpx.get(f"{url}/metrics").text.splitlines():
        if line.startswith("forecast_extender_requests_total{") and f'outcome="{outcome}"' in line:
            found[line.partition('verb="')[2].partition('"')[0]] = int(float(line.rpartition(" ")[2]))
    return found


@pytest.mark.parametrize("cached", [True, False], ids=["names", "whole nodes"])
def test_filters_and_points_decide(
    plane: ControlPlane, writer: ClusterWriter, url: str, simple: SimpleExtender, cached: bool
) -> None:
    """Rejected nodes take no pod, and the node with points takes all of them."""
    with KubeScheduler(plane, [extender(url, nodeCacheCapable=cached, **VERBS)], settings=QUICK) as scheduler:
        nodes = placed(writer, scheduler, [f"cart-{i}" for i in range(5)])
    assert set(nodes.values()) == {"good"}
    # A pod may be tried twice while kube-scheduler still learns of its nodes, but never without us.
    assert {"filter", "prioritize"} == {verb for verb, _ in simple.asked} and len(simple.asked) >= 10
    assert not _outcomes(url, "malformed") & Counter(filter=1, prioritize=1)


def test_negative_points_push_away_and_missing_nodes_have_none(
    plane: ControlPlane, writer: ClusterWriter, url: str
) -> None:
    """Two nodes are left, one with -10 points and one that is not in the reply: kube-scheduler does not clamp."""
    with KubeScheduler(plane, [extender(url, **VERBS)], settings=QUICK) as scheduler:
        manifests = [pod(f"cart-{i}") for i in range(5)]
        for manifest in manifests:
            manifest["spec"]["affinity"] = _only("plain", "bad", "hot")
        writer.create_many(manifests)
        nodes = wait_until_placed(writer, scheduler, [m["metadata"]["name"] for m in manifests])
    assert set(nodes.values()) == {"plain"}


@pytest.mark.parametrize("cached", [True, False], ids=["uids", "whole pods"])
def test_preemption_goes_where_our_filters_let_it(
    plane: ControlPlane, writer: ClusterWriter, simple: SimpleExtender, url: str, cached: bool
) -> None:
    """Both nodes are full, with a pod of least priority on `gpu`, whose eviction would not help by our rules."""
    classes = {name: f"{name}-{str(cached).lower()}" for name in ("high", "middle")}
    for name, value in (("high", 1000), ("middle", 500)):
        metadata = {"name": classes[name]}
        writer.create(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}
        )
    writer.create(pod("low-gpu", node="gpu", cpu="15"))
    middle = pod("middle-plain", node="plain", cpu="15")
    middle["spec"]["priorityClassName"] = classes["middle"]
    writer.create(middle)
    urgent = pod("urgent", cpu="15")
    urgent["spec"] |= {"priorityClassName": classes["high"], "affinity": _only("plain", "gpu")}
    with KubeScheduler(plane, [extender(url, nodeCacheCapable=cached, **VERBS)], settings=QUICK) as scheduler:
        writer.create(urgent)
        assert _evicted(writer, scheduler) == {"middle-plain"}
    assert ("preempt", "default/urgent") in simple.asked


def _only(*names: str) -> dict[str, object]:
    """Affinity to nodes by name; the names are those above."""
    assert set(names) <= set(NODES)
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _evicted(writer: ClusterWriter, scheduler: KubeScheduler) -> set[str]:
    """Names of pods that were told to go or are gone. Without a kubelet those told to go stay."""
    deadline = time.monotonic() + 60
    while True:
        pods = {p["metadata"]["name"]: p["metadata"] for p in writer.list_all("pods")}
        staying = {name for name, metadata in pods.items() if "deletionTimestamp" not in metadata}
        if gone := {"middle-plain", "low-gpu"} - staying:
            return gone
        assert time.monotonic() < deadline, scheduler.end_of_log()
        time.sleep(0.05)
