"""Reads the workloads of training from the API server: those that pods were seen of, and those that have the label of
the tide and may have no pods at the moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from forecast.service_key import ServiceKey
from kube.client.api_answer import Answer
from kube.decoding.watched_kinds import REFUSED
from kube.session.request_retries import Requests
from scheduler.profiles.gpu.tide.api_discovery import Discovery
from scheduler.profiles.gpu.tide.workloads import (
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

_SECONDS: Final = 5.0
_AT_ONCE: Final = 16
_LISTED: Final = tuple(BUILT_IN[kind] for kind in ("Deployment", "StatefulSet", "Job"))


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

    async def again(self, state: WorkloadState) -> tuple[WorkloadState | None, Answer]:
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
                failures[kind.plural] = f"they cannot be listed (grant list on {kind.plural}): {_said(answer)}"
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
            failures[str(key)] = f"it cannot be read (grant get on {kind.plural}): {_said(answer)}"
        return None

    async def _with_scale(self, state: WorkloadState) -> tuple[WorkloadState | None, Answer]:
        answer = await self._get(scale_path(state.kind, state.key))
        if not answer.is_success:
            return None, answer
        try:
            return state.scaled(*read_scale(answer.body)), answer
        except REFUSED:
            return None, answer

    async def _get(self, path: str) -> Answer:
        return await self._session.request("GET", path, None, seconds=_SECONDS)


def _read(kind: WorkloadKind, answer: Answer) -> WorkloadState | None:
    if not answer.is_success:
        return None
    try:
        return read_workload(kind, answer.body)
    except (*REFUSED, ValueError):
        return None


def _said(answer: Answer) -> str:
    return answer.text or str(answer.status)
