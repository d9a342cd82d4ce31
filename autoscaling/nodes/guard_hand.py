"""Marks the nodes that the coming hours need, and removes the marks in the valley.

Which nodes are there comes from the live tables, and so do our own marks. Each node that is to change is read by itself
just before: only there are the annotations of others. Nothing is remembered that must not be lost: a new leader finds
all marks on the nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec
import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric

from autoscaling.autoscale_settings import GuardOptions
from autoscaling.nodes.buffers import NAME_PREFIX
from autoscaling.nodes.guard import (
    ABOUT_TO_GO,
    GuardedNodes,
    MarkedNodeJson,
    is_foreign,
    kept_until,
    marking,
    marks,
    unmarking,
)
from autoscaling.nodes.owned_objects import MISSING, SECONDS, TRIES, NodesError, is_over, required
from autoscaling.services_ahead import ServicesAhead
from base.arrays import Floats
from cluster.live_tables import LiveTables
from cluster.tables.state import ClusterState
from kube.client.pod_writes import MERGE
from kube.objects.objects import NodeInfo
from kube.session.session_calls import Requests, request_with_retries

logger = logging.getLogger(__name__)

_NODES: Final = "/api/v1/nodes"
_AT_ONCE: Final = 16
"""Nodes that are read and written at the same time."""
_PAGE: Final = 500
_FOREIGN_SECONDS: Final = 600.0
"""A node that others keep is looked at again after this time."""


class _Page(msgspec.Struct):
    items: list[MarkedNodeJson]
    metadata: dict[str, Any] = {}


class GuardHand:
    """A hand of the service `autoscale` (autoscaling/autoscaler.py). Raises NodesError; the next call goes on.

    nodes : the nodes as they are now
    """

    name = "guard"

    def __init__(
        self,
        session: Requests,
        nodes: Callable[[], GuardedNodes],
        options: GuardOptions,
        *,
        seconds: float = SECONDS,
    ) -> None:
        """seconds: timeout of one request"""
        self._session, self._nodes, self._options, self._seconds = session, nodes, options, seconds
        self._foreign: dict[str, float] = {}  # when a node was seen that others keep
        self.kept = 0
        """Nodes to keep, as last decided, for the metrics."""

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        """Bring the marks to what the forecast asks for. One that others changed meanwhile waits for the next call."""
        nodes, options = self._nodes(), self._options
        self._foreign = {name: seen for name, seen in self._foreign.items() if now - seen < _FOREIGN_SECONDS}
        keep = set(marks(ahead, nodes, now, options, foreign=self._foreign.keys()).keep)
        self.kept = len(keep)
        late = nodes.until - now < options.horizon / 2
        await self._all(
            partial(self._mark, name, now) if name in keep else partial(self._unmark, name)
            for name, is_marked, is_late in zip(nodes.names, nodes.marked.tolist(), late.tolist(), strict=True)
            if (is_late if name in keep else is_marked)
        )

    def metrics(self) -> Iterator[Metric]:
        """Nodes that are to stay."""
        yield GaugeMetricFamily("forecast_autoscale_kept_nodes", "Nodes to mark, as last decided.", value=self.kept)

    async def retreat(self) -> None:
        """Remove all our marks, on whatever nodes they are."""
        found = [node.metadata.name for node in await self._list() if unmarking(node) is not None]
        await self._all(partial(self._unmark, name, tries=TRIES) for name in found)
        self.kept = 0

    async def _mark(self, name: str, now: float) -> None:
        node = await self._read(name)
        if node is None:
            return
        if is_foreign(node):
            self._foreign[name] = now
        elif (body := marking(node, now + self._options.horizon)) is not None:
            await self._patch(name, body, f"node {name} was not marked")

    async def _unmark(self, name: str, *, tries: int = 1) -> None:
        for _ in range(tries):
            node = await self._read(name)
            body = None if node is None else unmarking(node)
            if body is None or await self._patch(name, body, f"the mark of node {name} was not removed"):
                return
        if tries > 1:
            raise NodesError(f"the mark of node {name} was not removed: others wrote to it {tries} times: try again")

    async def _all(self, work: Iterator[Callable[[], Coroutine[Any, Any, None]]]) -> None:
        """A few at a time; all are tried before the first error is raised."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(begin: Callable[[], Coroutine[Any, Any, None]]) -> None:
            async with gate:
                await begin()

        outcomes = await asyncio.gather(*map(one, work), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _read(self, name: str) -> MarkedNodeJson | None:
        answer = await request_with_retries(self._session, "GET", _path(name), seconds=self._seconds)
        if answer.status == MISSING:
            return None
        return msgspec.json.decode(required(answer, f"node {name} was not read").body, type=MarkedNodeJson)

    async def _patch(self, name: str, body: bytes, what: str) -> bool:
        """Whether there is nothing left to do; False = another client wrote to the node meanwhile."""
        answer = await self._session.request("PATCH", _path(name), body, content_type=MERGE, seconds=self._seconds)
        return is_over(answer, what)

    async def _list(self) -> Sequence[MarkedNodeJson]:
        found: list[MarkedNodeJson] = []
        token = ""
        while True:
            path = f"{_NODES}?limit={_PAGE}" + (f"&continue={quote(token, safe='')}" if token else "")
            answer = await request_with_retries(self._session, "GET", path, seconds=self._seconds)
            page = msgspec.json.decode(required(answer, "nodes were not listed").body, type=_Page)
            found += page.items
            token = str(page.metadata.get("continue") or "")
            if not token:
                return found


def nodes_now(tables: LiveTables) -> GuardedNodes:
    """The nodes of the live tables."""
    with tables.reading() as cluster:
        state = cluster.state
        there = [(row, node) for row, node in enumerate(state.nodes) if node is not None]
        rows = [row for row, _ in there]
        columns = [state.kinds["cpu"], state.kinds["memory"]]
        allocatable = state.allocatable[rows][:, columns]
        requested = (state.requested[:, columns] - _placeholders(state))[rows]
    return GuardedNodes(
        names=tuple(node.name for _, node in there),
        allocatable=allocatable,
        requested=np.clip(requested, 0.0, allocatable),  # a node is full at most, whatever one pod requests
        usable=np.array([_is_usable(node) for _, node in there], dtype=np.bool_),
        until=np.array([kept_until(node.annotations) for _, node in there], dtype=np.float64),
    )


def _placeholders(state: ClusterState) -> Floats:
    """(n_rows, 2) cores and bytes that placeholder pods request on each node."""
    found = np.zeros((state.n_rows, 2))
    for replica_set in state.replica_sets.values():
        if not replica_set.name.startswith(NAME_PREFIX):
            continue
        for pod in state.pods_of(replica_set.uid):
            seat = state.seat_of.get(pod.uid)
            if seat is not None:
                found[seat.node] += (pod.requests.get("cpu", 0.0), pod.requests.get("memory", 0.0))
    return found


def _is_usable(node: NodeInfo) -> bool:
    return node.ready and not node.unschedulable and not any(taint.key in ABOUT_TO_GO for taint in node.taints)


def _path(name: str) -> str:
    return f"{_NODES}/{quote(name, safe='')}"
