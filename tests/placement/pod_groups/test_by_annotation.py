"""PodGroups that owners ask for by annotation: which one, what it says, and that it is created once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from base.errors import InputError
from forecast.service_key import NO_OWNER, Owner
from kube.client.api_answer import ApiAnswer
from kube.objects.objects import PodInfo
from placement.pod_groups.group_of_pod import (
    CREATED_FOR,
    GROUP_LABEL,
    MIN_MEMBER,
    group_of,
    minima_of,
    name_of_owner,
    supposed_group,
)
from scheduler.gangs.group_creator import GroupCreator, suppose_groups
from scheduler.gangs.group_decoding import POD_GROUPS
from tests.scheduler.gangs.made_up import NOW, Scene, group, member

GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ml/podgroups"
TRAIN_JOB = "ml/train.job"
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-of-job", "controller": True}


def stating(uid: str, text: str = "2", *, owner: Owner = Owner("Job", "train"), **changes: Any) -> PodInfo:  # noqa: B008
    """A pod whose owner states a minimum."""
    made = replace(member(uid, of=""), annotations={MIN_MEMBER: text}, owner=owner, owner_uid="uid-of-job")
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("owner", "labels", "name"),
    [
        (Owner("Job", "train"), {}, "train.job"),
        (Owner("ReplicaSet", "web-5d4f"), {"pod-template-hash": "5d4f"}, "web.deployment"),
        (Owner("ReplicaSet", "web-5d4f"), {}, "web-5d4f.replicaset"),
        (Owner("TFJob", "t" * 253), {}, f"{'t' * 242}-"),
    ],
)
def test_the_group_is_named_after_the_owner(owner: Owner, labels: dict[str, str], name: str) -> None:
    found = name_of_owner(stating("a", owner=owner, labels=labels))
    assert found == name if len(name) < 243 else found.startswith(name) and len(found) == 253


def test_a_label_goes_before_the_annotation_and_that_before_the_group_that_a_job_always_has() -> None:
    assert group_of(stating("a")) == TRAIN_JOB
    assert group_of(stating("a", labels={GROUP_LABEL: "mine"})) == "ml/mine"
    assert group_of(stating("a", scheduling_group="train-x")) == TRAIN_JOB
    assert group_of(stating("a", labels={GROUP_LABEL: "mine"}, scheduling_group="train-x")) == "ml/mine"
    assert group_of(stating("a", annotations={}, scheduling_group="train-x")) == "ml/train-x of scheduling.k8s.io"


@pytest.mark.parametrize("text", ["0", "-1", "four", "", "1.5", "²", "2147483648", "9" * 5000])
def test_a_mistake_is_named_with_the_way_out(text: str) -> None:
    with pytest.raises(InputError, match=rf"^{MIN_MEMBER}: must be a whole number from 1 to 2147483647, found "):
        minima_of(stating("a", text))
    scene = Scene()
    scene.put(stating("a", text))
    Server(scene).step()
    assert scene.directory.gate(stating("a")).reason.startswith(
        f"PodGroup {TRAIN_JOB} does not exist: {MIN_MEMBER}: must"
    )


def test_a_pod_without_controller_is_refused() -> None:
    with pytest.raises(InputError, match="the pod has no controller: create a PodGroup"):
        minima_of(stating("a", owner=NO_OWNER))


class Server:
    """Answers like an API server that has pods, one ReplicaSet and PodGroups, and brings those to the directory.

    status : what it answers to POST and PATCH, 0 = it does as it is asked
    """

    def __init__(self, scene: Scene, *, listed: bool = True) -> None:
        self.scene, self.status, self.leads, self.now = scene, 0, True, 0.0
        self.pods: dict[str, dict[str, Any]] = {}
        self.groups: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.replica_set: dict[str, Any] = {"uid": "uid-of-job", "ownerReferences": []}
        if listed:
            scene.directory.replace_groups([])
        self.creator = GroupCreator(self, scene.directory, may_write=lambda: self.leads, clock=lambda: self.now)

    def put(self, *pods: PodInfo, reference: dict[str, Any] = JOB) -> None:
        for pod in pods:
            self.pods[pod.name] = {"uid": pod.uid, "ownerReferences": [reference]}
        self.scene.put(*pods)

    def step(self, *, seconds: float = 1.0) -> list[tuple[str, str]]:
        """What is written: method and last part of the path."""
        before = len(self.asked)
        self.now += seconds
        self.creator.step()
        self.scene.directory.tick()
        return [one for one in self.asked[before:] if one[0] != "GET"]

    def watch(self) -> None:
        found = [POD_GROUPS.decoded(json.dumps(one).encode())[0] for one in self.groups.values()]
        self.scene.directory.replace_groups(found)

    def submit(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(asyncio.run(work))
        return done

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        name = path.rpartition("/")[2]
        self.asked.append((method, name))
        if method == "GET":
            found = self.replica_set if "/replicasets/" in path else self.pods.get(name)
            return (
                ApiAnswer(404, text="404 no")
                if found is None
                else ApiAnswer(200, json.dumps({"metadata": found}).encode())
            )
        if self.status:
            return ApiAnswer(self.status, text=f"{self.status} no")
        assert body is not None and path.startswith(GROUPS)
        sent = json.loads(body)
        if method == "POST":
            if sent["metadata"]["name"] in self.groups:
                return ApiAnswer(409, text="409 it is there")
            self.groups[sent["metadata"]["name"]] = sent
        else:
            assert content_type == "application/merge-patch+json"
            self.groups[name]["spec"] |= sent["spec"]
        return ApiAnswer(201, b"{}")


def test_a_group_is_created_once_with_its_owner() -> None:
    server = Server(Scene())
    server.put(stating("a"), stating("b"))
    assert server.step() == [("POST", "podgroups")]
    made = server.groups["train.job"]
    assert made["spec"] == {"minMember": 2} and made["metadata"]["annotations"] == {CREATED_FOR: "Job/train"}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-of-job"}
    assert made["metadata"]["ownerReferences"] == [owner]
    assert server.step() == [], "the watch has not brought it yet"
    server.watch()
    assert server.scene.directory.gate(stating("a")).reason == ""
    assert server.step(seconds=3600) == []


def test_the_group_of_a_deployment_is_owned_by_it() -> None:
    server = Server(Scene())
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-of-web", "controller": True}
    server.replica_set["ownerReferences"] = [deployment]
    pod = stating("a", owner=Owner("ReplicaSet", "web-5d4f"), labels={"pod-template-hash": "5d4f"})
    server.put(pod, reference=JOB | {"kind": "ReplicaSet", "name": "web-5d4f"})
    server.step()
    assert server.groups["web.deployment"]["metadata"]["ownerReferences"][0]["uid"] == "uid-of-web"


def test_only_the_replica_that_leads_writes() -> None:
    server = Server(Scene())
    server.put(stating("a"))
    server.leads = False
    assert server.step() == []
    server.leads = True
    assert server.step() == [("POST", "podgroups")]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, "the API server forbids to create it (403): grant create on podgroups of scheduling.x-k8s.io"),
        (422, "the API server refuses to create it (422): 422 no"),
        (0, "no answer to the request to create it, it is tried again"),
    ],
)
def test_a_refusal_is_what_the_pods_say_until_it_succeeds(status: int, says: str) -> None:
    server = Server(Scene())
    server.put(stating("a"))
    server.status = status
    if not status:
        server.status, answer = 1, ApiAnswer(0)
        server.request = lambda *a, ask=server.request, **k: _lost(ask, answer, *a, **k)  # type: ignore[method-assign]
    assert server.step() == [("POST", "podgroups")]
    assert server.scene.directory.gate(stating("a")).reason == f"PodGroup {TRAIN_JOB} does not exist: {says}"
    assert server.step() == [], "not again at once"
    server.status = 0
    if status:
        assert server.step(seconds=11) == [("POST", "podgroups")]
        server.watch()
        assert (
            server.scene.directory.gate(stating("a")).reason
            == "waits for members: 1 of 2 pods of PodGroup train.job exist"
        )


async def _lost(ask: Any, answer: ApiAnswer, method: str, *arguments: Any, **rest: Any) -> ApiAnswer:
    done = await ask(method, *arguments, **rest)
    return done if method == "GET" else answer


def test_without_the_definition_the_pods_say_how_to_install_it() -> None:
    scene = Scene()
    server = Server(scene)
    scene.directory.replace_groups([], is_served=False)
    server.put(stating("a"))
    assert server.step() == []
    assert "install its definition with kubectl apply" in scene.directory.gate(stating("a")).reason


def test_the_newest_annotation_changes_a_group_that_was_created_so() -> None:
    server = Server(Scene())
    server.put(stating("a"))
    server.step()
    server.watch()
    server.put(stating("b", "3"))
    assert server.step() == [("PATCH", "train.job")]
    assert server.groups["train.job"]["spec"] == {"minMember": 3}
    server.watch()
    assert server.step(seconds=60) == []


def test_a_group_of_that_name_that_somebody_made_is_left_alone() -> None:
    server = Server(Scene())
    server.scene.directory.replace_groups([group(5, name="train.job")])
    server.put(stating("a"))
    assert server.step() == []
    assert "1 of 5 pods" in server.scene.directory.gate(stating("a")).reason


def test_pods_of_other_schedulers_create_nothing() -> None:
    server = Server(Scene())
    server.put(stating("a", scheduler_name="default-scheduler"))
    assert server.step() == []


def test_a_dry_run_supposes_the_groups() -> None:
    scene = Scene()
    scene.put(stating("a"), stating("b"), stating("odd", "four", owner=Owner("Job", "odd")))
    suppose_groups(scene.directory)
    assert scene.directory.gate(stating("a")).reason == ""
    assert MIN_MEMBER in scene.directory.gate(stating("odd", owner=Owner("Job", "odd"))).reason
    scene.put(stating("c", "5"))
    suppose_groups(scene.directory)
    assert "3 of 5 pods" in scene.directory.gate(stating("a")).reason
    assert supposed_group(stating("a")).created == NOW - 50
