"""PodGroups on a real API server: whole or not at all, one after the other, and nothing held meanwhile."""

from __future__ import annotations

from collections import Counter
from functools import partial

from testing.clusters.own_nodes import (
    Groups,
    assert_settled,
    bound,
    condition,
    group,
    groups,
    member,
    nodes_of,
    our_node,
    our_pod,
)
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started


def test_groups_larger_than_half_of_the_cluster_run_one_after_the_other(
    plane: ControlPlane, writer: ClusterWriter, start: Started
) -> None:
    names, n_members = ("red", "green", "blue"), 6
    writer.create_many(our_node(f"node-{i}", cpu=5) for i in range(2))
    process = start()
    with groups(plane) as those:
        for name in names:
            those.create(group(name, members=n_members))
        writer.create_many(member(name, number) for number in range(n_members) for name in names)
        for n_left in (3, 2, 1):
            assert eventually(lambda: bound(writer) == n_members), (nodes_of(writer), process.log)
            assert_settled(writer, [process])
            sitting = Counter(name.partition("-")[0] for name, node in nodes_of(writer).items() if node)
            assert len(sitting) == 1, f"parts of groups have a node: {sitting}"
            (running,) = sitting
            others = {name.partition("-")[0] for name in nodes_of(writer)} - {running}
            assert len(others) == n_left - 1
            for name in others:
                words = "Unschedulable", "Insufficient cpu"
                assert eventually(partial(_says, those, name, *words)), those.status(name)
            # Pods are told after their group, one after the other.
            assert eventually(lambda: all("placed as a whole or not at all" in why for why in _reasons(writer)))
            # What has no group goes into the rest that nobody holds.
            writer.create_many(our_pod(f"single-{n_left}-{number}", cpu="1") for number in range(10 - n_members))
            assert eventually(lambda: bound(writer, "single") == 10 - n_members), process.log
            writer.delete_many(one for one in writer.list_all("pods") if _is_of(one, running, "single"))


def _says(those: Groups, name: str, reason: str, words: str = "") -> bool:
    """Return whether the condition of a group has this reason, if one is given, and these words in its message."""
    conditions = those.status(name).get("conditions") or [{"reason": "", "message": ""}]
    return conditions[0]["reason"] in (reason or conditions[0]["reason"]) and words in conditions[0]["message"]


def _reasons(writer: ClusterWriter) -> list[str]:
    """Return why each pod without a node has none."""
    return [condition(one)[1] for one in writer.list_all("pods", field_selector="spec.nodeName=")]


def _is_of(manifest: dict[str, dict[str, str]], *prefixes: str) -> bool:
    return manifest["metadata"]["name"].partition("-")[0] in prefixes


MIN_MEMBER = "forecast-scheduler.io/min-member"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"


def job(api: Api, name: str, *, minimum: str) -> Manifest:
    """The Job of docs/use/gangs.md. Its controller does not run here: `pods_of` makes its pods."""
    ((_, manifest),) = shipped("crds/podgroups/examples/by-annotation.yaml")
    manifest["metadata"]["name"] = name
    manifest["spec"]["template"]["metadata"]["annotations"][MIN_MEMBER] = minimum
    return dict(api.request("POST", "/apis/batch/v1/namespaces/default/jobs", manifest))


def pods_of(owner: Manifest, n: int, *, first: int = 0) -> list[Manifest]:
    """As its controller makes them."""
    metadata, template = owner["metadata"], owner["spec"]["template"]
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{metadata['name']}-{number}",
                "namespace": "default",
                "annotations": template["metadata"]["annotations"],
                "ownerReferences": [reference],
            },
            "spec": template["spec"],
        }
        for number in range(first, first + n)
    ]


def test_a_job_that_states_a_minimum_is_placed_whole_and_once(
    plane: ControlPlane, writer: ClusterWriter, start: Started
) -> None:
    writer.create(our_node("small", cpu=3))
    lease = {"lease": {"enabled": True, "duration": "3s", "renew_deadline": "2s", "retry_period": "250ms"}}
    processes = [start(ready=False, **lease) for _ in range(2)]
    assert eventually(lambda: sum(one.metric("forecast_leader") for one in processes) == 1)
    with Api(plane) as api, groups(plane) as those:
        train = job(api, "train", minimum="4")
        writer.create_many(pods_of(train, 4))
        said = "3 of 4 members fit"
        assert eventually(lambda: said in str(_status(api, "train.job"))), processes[0].log[-3000:]
        assert bound(writer) == 0, "a part of the gang has a node"
        (made,) = api.request("GET", GROUPS)["items"]
        assert made["spec"] == {"minMember": 4}
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Job", train["metadata"]["uid"])
        writer.create(our_node("large", cpu=1))
        assert eventually(lambda: bound(writer) == 4), processes[0].log[-3000:]
        assert eventually(lambda: those.status("train.job").get("scheduled") == 4), those.status("train.job")
        (leader,) = [one for one in processes if one.metric("forecast_leader") == 1]
        assert_settled(writer, [leader])
        assert len(api.request("GET", GROUPS)["items"]) == 1


def _status(api: Api, name: str) -> Manifest:
    found = {one["metadata"]["name"]: one.get("status", {}) for one in api.request("GET", GROUPS)["items"]}
    return dict(found.get(name, {}))
