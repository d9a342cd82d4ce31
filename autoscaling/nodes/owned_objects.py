"""Objects of one namespace that bear our labels: created, changed and deleted on the version that was read; and what
an answer of the API server means, with the way out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from autoscaling.nodes.buffers import OURS, TEMPLATE_DIGEST, Json, digest_of
from base.errors import ForecastError
from kube.client.api_answer import ApiAnswer
from kube.client.pod_writes import MERGE
from kube.session.session_calls import Requests, request_with_retries

CONFLICT: Final = 409
MISSING: Final = 404
_FORBIDDEN: Final = 403

SECONDS: Final = 10.0
"""Timeout of one request."""

TRIES: Final = 5
"""Of a write that meets a newer version of its object each time."""


class NodesError(ForecastError):
    """The API server refused a buffer, a mark or a minimum, or did not answer. The next call tries again."""


def required(answer: ApiAnswer, what: str) -> ApiAnswer:
    """The answer if it is a success. Raises NodesError. what: a phrase such as "node a was not marked"."""
    if answer.status == _FORBIDDEN:
        raise NodesError(f"{what}: {answer.text}: grant the rights in deploy/components/autoscaler-writes/rbac.yaml")
    if not answer.is_success:
        raise NodesError(f"{what}: {answer.text or answer.status}: it is tried again")
    return answer


def is_over(answer: ApiAnswer, what: str) -> bool:
    """Return whether a write needs no other try; False = another client wrote to the object meanwhile.

    Raises NodesError if it was refused for good. what: as in `required`.
    """
    if answer.status in (CONFLICT, MISSING):
        return answer.status == MISSING
    required(answer, what)
    return True


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one kind. path: of the list in the namespace."""

    kind: str
    path: str


def pod_templates(namespace: str) -> Collection:
    """All PodTemplates of a namespace."""
    return Collection("PodTemplate", f"/api/v1/namespaces/{quote(namespace, safe='')}/podtemplates")


def deployments(namespace: str) -> Collection:
    """All Deployments of a namespace."""
    return Collection("Deployment", f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/deployments")


def capacity_buffers(namespace: str, version: str) -> Collection:
    """All CapacityBuffers of a namespace; version: of their API."""
    path = f"/apis/autoscaling.x-k8s.io/{version}/namespaces/{quote(namespace, safe='')}/capacitybuffers"
    return Collection("CapacityBuffer", path)


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str = ""


class _Spec(msgspec.Struct):
    replicas: int | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _List(msgspec.Struct):
    items: list[_Object] | None = None


_LIST: Final = msgspec.json.Decoder(_List)


class OwnedObjects:
    """For the event loop of the session. Raises NodesError where the API server refuses or does not answer."""

    def __init__(self, session: Requests, *, seconds: float = SECONDS) -> None:
        self._session, self._seconds = session, seconds

    async def bring(self, of: Collection, wanted: list[Json]) -> None:
        """Make our objects of a kind those that are wanted: the missing are created, the others changed or deleted.

        Controllers write the status of a Deployment while it grows, so a change may meet a newer version: what is there
        is read anew then. Raises NodesError if others are faster each time.
        """
        for _ in range(TRIES):
            if await self._brought(of, wanted):
                return
        raise NodesError(f"{of.kind}s were not changed: others wrote to them {TRIES} times: try again")

    async def _brought(self, of: Collection, wanted: list[Json]) -> bool:
        """Whether nothing is left to do; False = another client wrote to one of them meanwhile."""
        found = await self._list(of)
        by_name = {one["metadata"]["name"]: one for one in wanted}
        is_done = True
        for name, there in found.items():
            if name not in by_name:
                is_done &= await self._delete(of, there)
        for name, one in by_name.items():
            if name not in found:
                await self._create(of, one)
            elif change := _change(found[name], one):
                is_done &= await self._patch(of, found[name], change)
        return is_done

    async def clear(self, of: Collection) -> None:
        """Delete all our objects of a kind."""
        await self.bring(of, [])

    async def get(self, path: str, what: str) -> ApiAnswer | None:
        """The answer to a GET; None = there is no such thing. what: of an error, as in `required`."""
        answer = await request_with_retries(self._session, "GET", path, seconds=self._seconds)
        return None if answer.status == MISSING else required(answer, what)

    async def _list(self, of: Collection, *, deleted: bool = False) -> dict[str, _Object]:
        """Ours by name; deleted: those, too, that are being deleted."""
        answer = await self.get(f"{of.path}?labelSelector={quote(OURS)}", f"{of.kind}s were not listed")
        if answer is None:  # the definition is gone
            return {}
        try:
            items = _LIST.decode(answer.body).items or []
        except msgspec.DecodeError as error:
            raise NodesError(f"the list of {of.kind}s cannot be read: {error}") from error
        return {one.metadata.name: one for one in items if deleted or not one.metadata.deletion_timestamp}

    async def _create(self, of: Collection, wanted: Json) -> None:
        name = wanted["metadata"]["name"]
        answer = await self._session.request(
            "POST", f"{of.path}?fieldValidation=Strict", msgspec.json.encode(wanted), seconds=self._seconds
        )
        if answer.status == CONFLICT:
            if name in await self._list(of, deleted=True):
                return  # another writer was faster, or it is still being deleted
            raise NodesError(f"there is another {of.kind} {name}, without our labels: rename it, or delete it")
        required(answer, f"{of.kind} {name} was not created")

    async def _patch(self, of: Collection, there: _Object, change: Json) -> bool:
        name = there.metadata.name
        change.setdefault("metadata", {})["resourceVersion"] = there.metadata.resource_version
        answer = await self._session.request(
            "PATCH", f"{of.path}/{name}", msgspec.json.encode(change), content_type=MERGE, seconds=self._seconds
        )
        return is_over(answer, f"{of.kind} {name} was not changed")

    async def _delete(self, of: Collection, there: _Object) -> bool:
        name, uid, version = there.metadata.name, there.metadata.uid, there.metadata.resource_version
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid, "resourceVersion": version}}
        answer = await self._session.request(
            "DELETE", f"{of.path}/{name}", msgspec.json.encode(options), seconds=self._seconds
        )
        return is_over(answer, f"{of.kind} {name} was not deleted")


def _change(there: _Object, wanted: Json) -> Json:
    """What is to be merged into an object; empty = nothing."""
    # Same name, same node selector, affinity and tolerations (buffers.py): nothing is left behind by merging.
    change: dict[str, Any] = {}
    replicas = wanted.get("spec", {}).get("replicas")
    if replicas is not None and there.spec.replicas != replicas:
        change["spec"] = {"replicas": replicas}
    digest = digest_of(wanted)
    if digest and (there.metadata.annotations or {}).get(TEMPLATE_DIGEST) != digest:
        change["metadata"] = {"annotations": {TEMPLATE_DIGEST: digest}}
        if "template" in wanted:
            change["template"] = wanted["template"]
        else:
            change.setdefault("spec", {})["template"] = wanted["spec"]["template"]
    return change
