"""Reads the workloads of training from the API server: those that pods were seen of, and those that have the label of
the tide and may have no pods at the moment.

Which API a kind belongs to whose pods were seen, and whether it can be scaled: asked of the API server's discovery.

An owner reference says kind and name of a workload; built-in kinds are known, custom resources are looked up here.
https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from forecast.service_key import ServiceKey
from kube.client.api_answer import ApiAnswer
from kube.decoding.watched_kinds import REFUSED
from kube.decoding.wire_base import Text, Wire
from kube.session.session_calls import Requests
from profiles.gpu.tide.workloads import (
    BUILT_IN,
    LABELLED,
    WorkloadKind,
    WorkloadState,
    collection_path,
    object_path,
    read_list,
    read_scale,
    read_workload,
    scale_path,
)

# Which API a kind belongs to whose pods were seen, and whether it can be scaled: asked of the API server's discovery.
#
# An owner reference says kind and name of a workload; built-in kinds are known, custom resources are looked up here.
# https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api

T = TypeVar("T", bound=Wire)
_KEPT_SECONDS: Final = 600.0
_GROUPS_AT_ONCE: Final = 8
_MOST_GROUPS: Final = 500

_SECONDS: Final = 5.0
_AT_ONCE: Final = 16
_LISTED: Final = tuple(BUILT_IN[kind] for kind in ("Deployment", "StatefulSet", "Job"))


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
            gate = asyncio.Semaphore(_GROUPS_AT_ONCE)

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


@dataclass(frozen=True, slots=True)
class ReadWorkloads:
    """found: by key; failures: why some could not be read, by what it was"""

    found: Mapping[ServiceKey, WorkloadState] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


class WorkloadReader:
    """Used in one event loop. kinds: further ones to be listed, group/version/plural"""

    def __init__(
        self, session: Requests, kinds: tuple[str, ...] = (), *, clock: Callable[[], float] = time.time
    ) -> None:
        self._session, self._kinds, self._discovery = session, kinds, Discovery(session, clock)

    async def read(self, wanted: Mapping[ServiceKey, str]) -> ReadWorkloads:
        """wanted: workloads that pods were seen of, and the UID that these name as their owner's; '' = they do not."""
        found: dict[ServiceKey, WorkloadState] = {}
        failures: dict[str, str] = {}
        listed = list(_LISTED)
        for named in self._kinds:
            kind = await self._discovery.of_plural(named)
            if kind is None:
                failures[named] = "there is no such kind, or it has no scale subresource"
            else:
                listed.append(kind)
        for states in await asyncio.gather(*(self._list(kind, failures) for kind in listed)):
            found |= {one.key: one for one in states}
        gate = asyncio.Semaphore(_AT_ONCE)

        async def ask(key: ServiceKey, uid: str) -> WorkloadState | None:
            async with gate:
                return await self._one(key, uid, failures)

        missing = [(key, uid) for key, uid in wanted.items() if key not in found]
        for state in await asyncio.gather(*(ask(key, uid) for key, uid in missing)):
            if state is not None:
                found[state.key] = state
        return ReadWorkloads(found, failures)

    async def again(self, state: WorkloadState) -> tuple[WorkloadState | None, ApiAnswer]:
        """Read the workload again; None = it is unreadable, or another one by now."""
        answer = await self._get(object_path(state.kind, state.key))
        now = _read(state.kind, answer)
        if now is None or now.uid != state.uid:
            return None, answer
        return (now, answer) if now.replicas is not None else await self._with_scale(now)

    # Inside

    async def _list(self, kind: WorkloadKind, failures: dict[str, str]) -> list[WorkloadState]:
        found: list[WorkloadState] = []
        goes_on = ""
        while True:
            path = f"{collection_path(kind)}?{LABELLED}" + (f"&continue={goes_on}" if goes_on else "")
            answer = await self._get(path)
            if not answer.is_success:
                failures[kind.plural] = f"they cannot be listed (grant list on {kind.plural}): {answer.text}"
                return found
            try:
                some, goes_on = read_list(kind, answer.body)
            except REFUSED as error:
                failures[kind.plural] = f"the list cannot be read: {error}"
                return found
            for one in some:
                state = one if one.replicas is not None else (await self._with_scale(one))[0]
                if state is not None:
                    found.append(state)
            if not goes_on:
                return found

    async def _one(self, key: ServiceKey, uid: str, failures: dict[str, str]) -> WorkloadState | None:
        kinds = (BUILT_IN[key.kind],) if key.kind in BUILT_IN else await self._discovery.of_kind(key.kind)
        if not kinds:
            failures[str(key)] = f"no kind {key.kind} with a scale subresource: it is never moved"
            return None
        for kind in kinds:
            answer = await self._get(object_path(kind, key))
            state = _read(kind, answer)
            if state is not None and uid in ("", state.uid):
                if state.replicas is None:
                    state, answer = await self._with_scale(state)
                if state is not None:
                    return state
            failures[str(key)] = f"it cannot be read (grant get on {kind.plural}): {answer.text}"
        return None

    async def _with_scale(self, state: WorkloadState) -> tuple[WorkloadState | None, ApiAnswer]:
        answer = await self._get(scale_path(state.kind, state.key))
        if not answer.is_success:
            return None, answer
        try:
            return state.scaled(*read_scale(answer.body)), answer
        except REFUSED:
            return None, answer

    async def _get(self, path: str) -> ApiAnswer:
        return await self._session.request("GET", path, None, seconds=_SECONDS)


def _read(kind: WorkloadKind, answer: ApiAnswer) -> WorkloadState | None:
    if not answer.is_success:
        return None
    try:
        return read_workload(kind, answer.body)
    except (*REFUSED, ValueError):
        return None
