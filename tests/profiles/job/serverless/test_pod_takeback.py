"""Pods that have not started are taken back on a real API server; those that have started never."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kube.client.api_answer import ApiAnswer, answered
from kube.client.kubernetes_client import api_client
from kube.decoding.decoding import Kind, decode_object
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from profiles.job.circuit_breaker import StartFailure
from profiles.job.serverless.pod_takeback import TakebackOutcome, TakenBack, take_back
from profiles.job.serverless.provider_tables import NotStarted
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane

NOW = 1_780_000_000.0


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running_plane:
        yield running_plane


@pytest.fixture
def writer(plane: ControlPlane) -> Iterator[ClusterWriter]:
    with ClusterWriter(plane) as writing:
        writing.create(node("virtual"))
        yield writing
        writing.delete_many([*writing.list_all("pods"), *writing.list_all("nodes")])


@pytest.fixture
def session(plane: ControlPlane) -> Iterator[ApiSession]:
    made = ApiSession(api_client(plane.kubeconfig))
    made.start()
    yield made
    made.stop()


def created(writer: ClusterWriter, name: str) -> tuple[Manifest, PodInfo]:
    manifest = writer.create(pod(name, node="virtual"))
    info = decode_object(Kind.PODS, json.dumps({"kind": "Pod"} | manifest).encode())[0]
    assert isinstance(info, PodInfo)
    return manifest, info


def now_of(writer: ClusterWriter, name: str) -> Manifest | None:
    return next((one for one in writer.list_all("pods") if one["metadata"]["name"] == name), None)


def taken_back(session: ApiSession, info: PodInfo, failure: StartFailure = StartFailure.STALLED) -> TakenBack:
    done: list[TakenBack] = []

    async def work() -> None:
        done.append(await take_back(session, NotStarted(info, "aci", failure), NOW))

    session.submit(work()).result(60)
    return done[0]


def condition_of(manifest: Manifest) -> tuple[str, str, str]:
    (found,) = (one for one in manifest["status"]["conditions"] if one["type"] == "DisruptionTarget")
    return found["status"], found["reason"], found["message"]


def test_a_pod_that_has_not_started_goes_and_says_that_it_was_disrupted(
    writer: ClusterWriter, session: ApiSession
) -> None:
    _, info = created(writer, "p")
    assert taken_back(session, info).outcome is TakebackOutcome.TAKEN_BACK
    now = now_of(writer, "p")
    assert now is not None and "deletionTimestamp" in now["metadata"]
    assert condition_of(now) == ("True", "ProviderDidNotStartPod", "the provider aci has not started it in time")


def test_one_that_has_started_meanwhile_stays_and_is_no_disruption(writer: ClusterWriter, session: ApiSession) -> None:
    manifest, info = created(writer, "p")
    writer.patch_status(manifest, running())
    assert taken_back(session, info).outcome is TakebackOutcome.STARTED
    now = now_of(writer, "p")
    assert now is not None and "deletionTimestamp" not in now["metadata"]
    assert condition_of(now)[0] == "False"


def test_one_that_starts_just_before_it_is_deleted_stays(
    writer: ClusterWriter, session: ApiSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, info = created(writer, "p")
    real = session.request

    async def request(method: str, path: str, body: bytes | None, **more: Any) -> ApiAnswer:
        if method == "DELETE":
            writer.patch_status(manifest, running())
        return await real(method, path, body, **more)

    monkeypatch.setattr(session, "request", request)
    assert taken_back(session, info).outcome is TakebackOutcome.CHANGED
    now = now_of(writer, "p")
    assert now is not None and "deletionTimestamp" not in now["metadata"]
    monkeypatch.undo()
    assert taken_back(session, info).outcome is TakebackOutcome.STARTED
    now = now_of(writer, "p")
    assert now is not None and condition_of(now)[0] == "False"


@pytest.mark.parametrize(("method", "right"), [("PATCH", "patch on pods/status"), ("DELETE", "delete on pods")])
def test_a_right_that_is_missing_is_named(
    writer: ClusterWriter, session: ApiSession, monkeypatch: pytest.MonkeyPatch, method: str, right: str
) -> None:
    _, info = created(writer, "p")
    real = session.request

    async def request(asked: str, path: str, body: bytes | None, **more: Any) -> ApiAnswer:
        return answered(403, b'{"message":"no"}') if asked == method else await real(asked, path, body, **more)

    monkeypatch.setattr(session, "request", request)
    done = taken_back(session, info)
    assert done.outcome is TakebackOutcome.FAILED and f"grant {right}" in done.why
