"""Which API a kind belongs to whose pods were seen, and whether it can be scaled: asked of the API server's discovery.

An owner reference says kind and name of a workload; built-in kinds are known, custom resources are looked up here.
https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from kube.decoding.wire_base import Text, Wire
from kube.session.request_retries import Requests
from scheduler.profiles.gpu.tide.workloads import WorkloadKind

T = TypeVar("T", bound=Wire)

_SECONDS: Final = 5.0
_KEPT_SECONDS: Final = 600.0
_AT_ONCE: Final = 8
_MOST_GROUPS: Final = 500


class _Version(Wire):
    group_version: Text = ""


class _Group(Wire):
    name: Text = ""
    preferred_version: _Version | None = None


class _Groups(Wire):
    groups: list[_Group] | None = None


class _Resource(Wire):
    name: Text = ""
    kind: Text = ""


class _Resources(Wire):
    resources: list[_Resource] | None = None


_GROUPS: Final = msgspec.json.Decoder(_Groups)
_RESOURCES: Final = msgspec.json.Decoder(_Resources)


class Discovery:
    """Used in one event loop. What was found is kept for ten minutes, and so is that nothing was."""

    def __init__(self, session: Requests, clock: Callable[[], float]) -> None:
        self._session, self._clock = session, clock
        self._found: tuple[WorkloadKind, ...] = ()
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()

    async def of_kind(self, kind: str) -> tuple[WorkloadKind, ...]:
        """Those that can be scaled, of all groups."""
        return tuple(one for one in await self._all() if one.kind == kind)

    async def of_plural(self, named: str) -> WorkloadKind | None:
        """Return the kind of that name, group/version/plural; None = there is none, or it has no scale."""
        group, version, plural = named.split("/")
        found = await self._of_version(f"{group}/{version}")
        return next((one for one in found if one.plural == plural), None)

    async def _all(self) -> tuple[WorkloadKind, ...]:
        async with self._lock:
            if 0 <= self._clock() - self._read_at < _KEPT_SECONDS:
                return self._found
            answer = await self._session.request("GET", "/apis", None, seconds=_SECONDS)
            if not answer.is_success:
                return self._found
            groups = _decoded(_GROUPS, answer.body, _Groups()).groups or []
            versions = [one.preferred_version.group_version for one in groups if one.preferred_version is not None]
            gate = asyncio.Semaphore(_AT_ONCE)

            async def ask(version: str) -> Iterable[WorkloadKind]:
                async with gate:
                    return await self._of_version(version)

            parts = await asyncio.gather(*map(ask, versions[:_MOST_GROUPS]))
            self._found, self._read_at = tuple(one for part in parts for one in part), self._clock()
            return self._found

    async def _of_version(self, group_version: str) -> list[WorkloadKind]:
        group, _, version = group_version.partition("/")
        answer = await self._session.request("GET", f"/apis/{group}/{version}", None, seconds=_SECONDS)
        if not answer.is_success:
            return []
        resources = _decoded(_RESOURCES, answer.body, _Resources()).resources or []
        scalable = {one.name.removesuffix("/scale") for one in resources if one.name.endswith("/scale")}
        return [WorkloadKind(group, version, one.name, one.kind) for one in resources if one.name in scalable]


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes, otherwise: T) -> T:
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError:
        return otherwise
