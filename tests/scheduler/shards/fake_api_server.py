"""Leases, nodes and pods of an API server in memory, and a client per replica whose requests can go wrong."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from types import SimpleNamespace
from typing import Any

import msgspec
import urllib3

from kube.objects.objects import NodeInfo, PodInfo

_LEASES = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/[^/]+/leases(?:/(?P<name>[^?]+))?")
_NODE = re.compile(r"/api/v1/nodes/(?P<name>.+)")


class Fate(Enum):
    """What becomes of a request."""

    ANSWERED = "answered"
    REFUSED = "refused"  # it never arrives
    ANSWER_LOST = "answer lost"
    LATE = "late"  # it arrives when the client has given up


@dataclass
class ApiServer:
    """`log` is what a watch shows: objects as they became, or the UID of a pod that is gone."""

    leases: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[str, NodeInfo] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    pods: dict[str, PodInfo] = field(default_factory=dict)
    log: list[NodeInfo | PodInfo | str] = field(default_factory=list)
    version: int = 0

    def put_node(self, node: NodeInfo) -> None:
        self.nodes[node.name] = node
        self.versions[node.name] = self._next()
        self.log.append(node)

    def put_pod(self, pod: PodInfo) -> None:
        self.pods[pod.uid] = pod
        self.log.append(pod)

    def delete_pod(self, uid: str) -> None:
        del self.pods[uid]
        self.log.append(uid)

    def answer(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Return status and body of the answer."""
        if (found := _LEASES.fullmatch(path.partition("?")[0])) is not None:
            status, said = self._lease(method, found["name"] or "", msgspec.json.decode(body or b"{}"))
        else:
            named = _NODE.fullmatch(path)
            assert named is not None, path
            status, said = self._node(method, named["name"], msgspec.json.decode(body or b"{}"))
        return status, msgspec.json.encode(said)

    # Inside

    def _lease(self, method: str, name: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "GET":
            return 200, {"items": list(self.leases.values())}
        if method == "POST":
            name = body["metadata"]["name"]
            return (409, _status("exists")) if name in self.leases else (201, self._store(name, body))
        known = self.leases.get(name)
        if known is None:
            return 404, _status("gone")
        asked = body["preconditions"] if method == "DELETE" else body["metadata"]
        if asked["resourceVersion"] != known["metadata"]["resourceVersion"]:
            return 409, _status("changed")
        return (200, self.leases.pop(name)) if method == "DELETE" else (200, self._store(name, body))

    def _store(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        metadata = body["metadata"] | {"resourceVersion": str(self._next())}
        self.leases[name] = body | {"metadata": metadata}
        return self.leases[name]

    def _node(self, method: str, name: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        metadata, node = body.get("metadata", {}), self.nodes[name]
        if metadata.get("resourceVersion", str(self.versions[name])) != str(self.versions[name]):
            return 409, _status("changed")
        if method == "PATCH":
            labels = dict(node.labels) | metadata.get("labels", {})
            merged = dict(node.annotations) | metadata.get("annotations", {})
            annotations = {key: text for key, text in merged.items() if text is not None}
            self.put_node(replace(node, labels=labels, annotations=annotations))
        return 200, {"metadata": {"name": name, "resourceVersion": str(self.versions[name])}}

    def _next(self) -> int:
        self.version += 1
        return self.version


class Client:
    """Stands for a kubernetes.client.ApiClient, as kube.client.kubernetes_client.send uses it.

    fate  : asked about each request
    after : called when a request has been served, or lost
    """

    def __init__(self, server: ApiServer, fate: Callable[[], Fate], after: Callable[[], None]) -> None:
        self._server, self._fate, self._after = server, fate, after
        self.late: list[tuple[str, str, bytes | None]] = []
        self.configuration = SimpleNamespace(host="", auth_settings=dict)
        self.rest_client = SimpleNamespace(pool_manager=SimpleNamespace(request=self._request))

    def arrive(self) -> None:
        """What was late arrives now."""
        late, self.late = self.late, []
        for request in late:
            self._server.answer(*request)

    def _request(self, method: str, path: str, *, body: bytes | None, **_: object) -> urllib3.BaseHTTPResponse:
        fate = self._fate()
        if fate is Fate.REFUSED:
            raise urllib3.exceptions.ProtocolError("refused")
        if fate is Fate.LATE:
            self.late.append((method, path, body))
            raise urllib3.exceptions.ProtocolError("timed out")
        status, data = self._server.answer(method, path, body)
        self._after()
        if fate is Fate.ANSWER_LOST:
            raise urllib3.exceptions.ProtocolError("connection closed")
        return urllib3.HTTPResponse(io.BytesIO(data), status=status, preload_content=False)


def _status(message: str) -> dict[str, Any]:
    return {"kind": "Status", "message": message}
