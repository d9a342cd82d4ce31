"""An untouched kube-scheduler places pods where the advisor nominates them: real API server, real kube-scheduler."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.gate_exemptions import ADVICE
from testing.clusters.advised_site import Site, note_of
from testing.processes.command import command
from testing.processes.webhook_process import Api
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually
from tests.advise.conftest import Started

OTHER = "example.com/other"


@pytest.fixture
def kube_scheduler(site: Site) -> Iterator[KubeScheduler]:
    with KubeScheduler(site.plane) as running:
        yield running


def test_pods_go_where_they_are_advised_to_go(
    site: Site, start: Started, kube_scheduler: KubeScheduler, tmp_path: Path
) -> None:
    n_pods, log = 60, tmp_path / "decisions.jsonl"
    process = start("--decisions", str(log))
    site.pods("burst", n_pods)
    site.await_bound(n_pods, log=lambda: process.log)
    for one in site.stored():
        note = note_of(one)
        assert note["node"] == one["spec"]["nodeName"] == one["status"].get("nominatedNodeName", note["node"])
        assert 0 <= note["expected_peak"]["share"] < 10 and note["model"] and note["runner_up"] != note["node"]
    assert eventually(lambda: process.metric("forecast_advice_pods_total") == n_pods)
    assert eventually(lambda: log.read_text().count("\n") == n_pods)
    decisions = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(one["node"] == one["advised_node"] and not one["elsewhere_because"] for one in decisions)
    with Api(site.plane) as api:

        def posted() -> bool:
            events = api.request("GET", "/apis/events.k8s.io/v1/events")["items"]
            return any(one["reportingController"] == "forecast-scheduler.io/advisor" for one in events)

        assert eventually(posted)


def test_gates_of_other_controllers_are_waited_for_and_left_alone(
    site: Site, start: Started, kube_scheduler: KubeScheduler
) -> None:
    process = start(gate_timeout="1s")
    (held,) = site.pods("other", 1, gates=[OTHER, ADVICE])
    time.sleep(3.0)
    (stored,) = site.stored("other")
    assert [gate["name"] for gate in stored["spec"]["schedulingGates"]] == [OTHER, ADVICE], process.log
    with Api(site.plane) as api:
        api.patch({"kind": "Pod", "metadata": held["metadata"]}, {"spec": {"schedulingGates": [{"name": ADVICE}]}})
    site.await_bound(1, "other", log=lambda: process.log)
    (stored,) = site.stored("other")
    assert note_of(stored)["node"] in (stored["spec"]["nodeName"], None)  # a busy machine may take longer than a second


def test_a_nomination_that_came_to_nothing_is_withdrawn_and_that_of_others_stays(site: Site, start: Started) -> None:
    process = start(follow_timeout="1s")
    made = site.pods("stale", 2)
    assert eventually(lambda: not site.held()), process.log
    nodes = site.writer.list_all("nodes")
    for one in nodes:
        site.writer.patch(one, {"spec": {"unschedulable": True}})
    # Nominated by a preemption, for instance: no business of ours.
    other = next(
        one["metadata"]["name"]
        for one in nodes
        if one["metadata"]["name"] != note_of(site.stored("stale-0001")[0])["node"]
    )
    site.writer.patch_status(made[1], {"nominatedNodeName": other})
    for one in made:  # as kube-scheduler does, but that it ends nominations that are in vain by itself
        site.writer.patch_status(one, {"conditions": [_UNSCHEDULABLE]})
    assert eventually(lambda: "nominatedNodeName" not in site.stored("stale-0000")[0]["status"]), process.log
    assert eventually(lambda: process.metric("forecast_assumed_pods") == 0)
    assert site.stored("stale-0001")[0]["status"]["nominatedNodeName"] == other
    assert eventually(lambda: process.metric("forecast_advice_withdrawn_total") == 1)


def test_what_an_advisor_nominated_that_is_dead_is_withdrawn_by_the_next_one(site: Site, start: Started) -> None:
    first = start()
    made = site.pods("left", 2)
    assert eventually(lambda: not site.held()), first.log
    first.kill()
    for one in made:
        site.writer.patch_status(one, {"conditions": [_UNSCHEDULABLE]})
    # As after a preemption: another node than the advisor named.
    site.writer.patch_status(made[1], {"nominatedNodeName": "elsewhere"})
    second = start(follow_timeout="1s")
    assert eventually(lambda: "nominatedNodeName" not in site.stored("left-0000")[0]["status"]), second.log
    assert eventually(lambda: second.metric("forecast_advice_withdrawn_total") == 1)
    assert site.stored("left-0001")[0]["status"]["nominatedNodeName"] == "elsewhere"


_UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}


def test_a_shadow_decides_and_writes_nothing(
    site: Site, start: Started, kube_scheduler: KubeScheduler, tmp_path: Path
) -> None:
    log = tmp_path / "decisions.jsonl"
    process = start("--decisions", str(log), "--shadow")
    site.writer.patch(
        {"kind": "Namespace", "metadata": {"name": site.sets[0]["metadata"]["namespace"]}},
        {"metadata": {"labels": {ADVICE: "advise"}}},
    )
    kube_scheduler.stop()
    site.pods("shadow", 6, gates=())
    assert eventually(lambda: process.metric("forecast_decisions_pending") == 6), process.log
    for one in site.stored("shadow"):
        assert not note_of(one) and "nominatedNodeName" not in one["status"]
    kube_scheduler.start()
    site.await_bound(6, "shadow")
    assert eventually(lambda: log.read_text().count("\n") == 6)
    assert all(json.loads(line)["shadow"] for line in log.read_text().splitlines())


def test_one_command_releases_pods_when_no_advisor_is_left(site: Site) -> None:
    site.pods("left", 5)
    site.pods("both", 1, gates=[OTHER, ADVICE])
    released = command("advise", "--release", "--kubeconfig", site.plane.kubeconfig)
    assert released.returncode == 0, released.stderr
    assert released.stdout.strip() == f"6 pod(s) released from {ADVICE}"
    assert not site.held()
    assert [gate["name"] for gate in site.stored("both")[0]["spec"]["schedulingGates"]] == [OTHER]
