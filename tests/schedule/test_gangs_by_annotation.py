"""PodGroups that the loop creates for owners that state a minimum by annotation, on a real API server."""

from __future__ import annotations

from testing.clusters.own_nodes import assert_settled, bound, groups, our_node
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.schedule.conftest import Started

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
    lease = {"leader_election": {"enabled": True, "duration": "3s", "renew_deadline": "2s", "retry_period": "250ms"}}
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
