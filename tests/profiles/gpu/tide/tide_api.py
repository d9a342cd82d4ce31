"""An API server with workloads, in memory: GET, lists by label, PATCH with resourceVersions, scale subresources."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from kube.client.api_answer import NO_ANSWER, ApiAnswer, answered
from profiles.gpu.tide.training_annotations import TIDE

Objects = dict[str, Any]

_PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets", "Job": "jobs"}


def workload(
    kind: str,
    name: str,
    replicas: int,
    *,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    gpus: int = 2,
    **spec: Any,
) -> Objects:
    """annotations: without their prefix."""
    said = {f"forecast-scheduler.io/{key}": value for key, value in (annotations or {}).items()}
    container = {"name": "main", "image": "app:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": {TIDE: "training"}},
        "spec": {"containers": [container]},
    }
    number = {"parallelism": replicas} if kind == "Job" else {"replicas": replicas}
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "generation": 1,
            "labels": labels or {},
            "annotations": said,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {**number, "template": template, **spec},
    }


class FakeApi:
    """Implements Session. before: called with method and path before every request, may change objects or answer."""

    def __init__(self, *objects: Objects, groups: dict[str, list[Objects]] | None = None) -> None:
        self.objects: dict[str, Objects] = {}
        self.groups = groups or {}
        self.written: list[tuple[str, Objects]] = []
        self.before: Callable[[str, str], ApiAnswer | None] = lambda method, path: None
        self._version = 0
        for one in objects:
            self.put(one)

    def put(self, one: Objects, *, group_version: str = "", plural: str = "") -> None:
        """Add an object, or put another in its place."""
        root = group_version or ("batch/v1" if one["kind"] == "Job" else "apps/v1")
        plural = plural or _PLURALS[one["kind"]]
        self.objects[f"/apis/{root}/namespaces/lab/{plural}/{one['metadata']['name']}"] = one
        self._touch(one)

    def spec(self, name: str) -> Objects:
        return dict(self.named(name)["spec"])

    def named(self, name: str) -> Objects:
        return next(one for one in self.objects.values() if one["metadata"]["name"] == name)

    def change(self, name: str, **spec: Any) -> None:
        """Change the spec as another controller does."""
        one = self.named(name)
        self._set_spec(one, spec)
        self._touch(one)

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run the coroutine now and return what came of it."""
        future: Future[Any] = Future()
        try:
            future.set_result(asyncio.run(work))
        except BaseException as error:
            future.set_exception(error)
        return future

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        said = self.before(method, path)
        if said is not None:
            return said
        plain, _, query = path.partition("?")
        if method == "GET":
            return self._get(plain, query)
        assert method == "PATCH" and body is not None and content_type == "application/merge-patch+json"
        return self._patch(plain, json.loads(body))

    def _get(self, path: str, query: str) -> ApiAnswer:
        if path in ("/apis", *(f"/apis/{version}" for version in self.groups)):
            return _ok(self._discovery(path))
        found = self.objects.get(path.removesuffix("/scale"))
        if found is not None:
            return _ok(_scale(found) if path.endswith("/scale") else found)
        if "labelSelector" in query:
            root, plural = path.rsplit("/", 1)
            items = [
                one
                for at, one in self.objects.items()
                if at.startswith(f"{root}/namespaces/")
                and f"/{plural}/" in at
                and one["metadata"]["labels"].get(TIDE) == "training"
            ]
            return _ok({"kind": "List", "items": items})
        return answered(404, json.dumps({"message": f"{path} not found"}).encode())

    def _discovery(self, path: str) -> Objects:
        if path == "/apis":
            versions = [{"preferredVersion": {"groupVersion": version}} for version in self.groups]
            return {"kind": "APIGroupList", "groups": versions}
        return {"kind": "APIResourceList", "resources": self.groups[path.removeprefix("/apis/")]}

    def _patch(self, path: str, patch: Objects) -> ApiAnswer:
        found = self.objects.get(path.removesuffix("/scale"))
        if found is None:
            return answered(404, b'{"message": "not found"}')
        version = patch["metadata"].pop("resourceVersion")
        if version != found["metadata"]["resourceVersion"]:
            return answered(409, b'{"message": "the object has been modified"}')
        self.written.append((path, patch))
        for part in ("annotations", "labels"):
            found["metadata"][part] |= patch["metadata"].get(part, {})
        self._set_spec(found, patch.get("spec", {}))
        self._touch(found)
        return _ok(_scale(found) if path.endswith("/scale") else found)

    def _set_spec(self, one: Objects, spec: Objects) -> None:
        """Each change of what is asked for is a generation."""
        before = dict(one["spec"])
        one["spec"] |= spec
        one["metadata"]["generation"] += one["spec"] != before

    def _touch(self, one: Objects) -> None:
        self._version += 1
        one["metadata"]["resourceVersion"] = str(self._version)


def no_answer() -> ApiAnswer:
    return ApiAnswer(NO_ANSWER, text="no answer: the connection was lost")


def _scale(one: Objects) -> Objects:
    replicas = one["spec"].get("replicas", 1)
    spec = {"replicas": replicas} if replicas else {}  # as Go writes it
    return {"kind": "Scale", "metadata": one["metadata"], "spec": spec}


def _ok(body: Objects) -> ApiAnswer:
    return ApiAnswer(200, json.dumps(body).encode())
