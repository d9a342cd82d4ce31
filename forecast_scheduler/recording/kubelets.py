"""How usage is read without a metrics store, and which way the rights of a kubeconfig or account allow.

    kubelets         GET nodes/NAME/proxy/metrics/resource   a request for each node; counters, so nothing is missed
    metrics.k8s.io   GET nodes, GET pods                     two requests in all; means of 15 s, between which it misses

The proxy asks for the right `get` on nodes/proxy, by which one can also run commands in every pod: people who may do
that anyway have it, and no account of ours. `nodes/metrics` opens the kubelet's own port alone, not the proxy.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol

from kubernetes.client import ApiClient

from base.errors import ForecastError, InputError
from forecast_scheduler.recording.metrics_api import NODES_PATH, PODS_PATH, read_metrics_api
from kube.client.access_review import ask_right
from kube.client.kubernetes_client import send
from trainer.sampling.readings import NodeReading, UnreadableText, read_resource_metrics

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""Requests under way. A node that hangs holds one of them for _SECONDS."""

_SECONDS: Final = 10.0
"""As metrics-server gives a kubelet."""

_TRIED_FIRST: Final = 3
"""Nodes that are asked before the way through the proxy is given up: one may just be gone."""

_WAY_OUT: Final = (
    "grant get on nodes/proxy to the user or account that records, or install metrics-server and grant list on nodes "
    "and pods of metrics.k8s.io; or install Prometheus (docs/operate/prometheus.md)"
)

Took = Callable[[str, NodeReading | None, str], None]
"""(node, what it says, or None and why not), on any thread."""


class ReadingFailed(ForecastError):
    """No answer that can be used."""


class UsageWay(Protocol):
    """One of the two ways."""

    says: str

    def read(self, nodes: Sequence[str], seconds: float, took: Took) -> None:
        """Read these nodes once, with the requests spread over this time."""

    def close(self) -> None:
        """End what is under way."""


class KubeletProxy:
    """Asks each kubelet through the API server's proxy of nodes. Implements UsageWay."""

    says = "kubelets through the API server's node proxy"

    def __init__(self, api: ApiClient, clock: Callable[[], float], ended: threading.Event) -> None:
        """ended: set when no more is to be read"""
        self._api, self._clock, self._ended = api, clock, ended
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="kubelet")
        self._under_way: dict[str, Future[None]] = {}

    def read_node(self, node: str) -> NodeReading:
        """Ask one kubelet for its counters and memory. Raises ReadingFailed."""
        answer = send(
            self._api,
            "GET",
            f"/api/v1/nodes/{node}/proxy/metrics/resource",
            seconds=_SECONDS,
            headers={"Accept": "text/plain"},
        )
        if not answer.is_success:
            raise ReadingFailed(answer.text)
        try:
            return read_resource_metrics(answer.body.decode(errors="replace"), self._clock())
        except UnreadableText as error:
            raise ReadingFailed(str(error)) from error

    def read(self, nodes: Sequence[str], seconds: float, took: Took) -> None:
        began = time.monotonic()
        for number, node in enumerate(nodes):
            if self._ended.wait(max(0.0, began + seconds * number / len(nodes) - time.monotonic())):
                return
            before = self._under_way.get(node)
            if before is not None and not before.done():
                took(node, None, f"it has not answered for {_SECONDS:g} s")
                continue
            self._under_way[node] = self._threads.submit(self._one, node, took)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _one(self, node: str, took: Took) -> None:
        try:
            reading = self.read_node(node)
        except ReadingFailed as error:
            took(node, None, str(error))
        except Exception as error:  # on a thread, where it would be lost
            logger.exception("a node was not read", extra={"node": node})
            took(node, None, f"{type(error).__name__}: {error}")
        else:
            took(node, reading, "")


class MetricsApi:
    """Reads all nodes at once from what metrics-server collects. Implements UsageWay."""

    says = "metrics.k8s.io"

    def __init__(
        self, api: ApiClient, clock: Callable[[], float], node_of: Callable[[], Mapping[tuple[str, str], str]]
    ) -> None:
        """node_of: where pods run, by (namespace, name)"""
        self._api, self._clock, self._node_of = api, clock, node_of

    def read_all(self) -> dict[str, NodeReading]:
        """All nodes. Raises ReadingFailed."""
        bodies = []
        for path in (NODES_PATH, PODS_PATH):
            answer = send(self._api, "GET", path, seconds=_SECONDS)
            if not answer.is_success:
                raise ReadingFailed(answer.text)
            bodies.append(answer.body)
        try:
            return read_metrics_api(bodies[0], bodies[1], self._node_of(), self._clock())
        except UnreadableText as error:
            raise ReadingFailed(str(error)) from error

    def read(self, nodes: Sequence[str], seconds: float, took: Took) -> None:
        try:
            found = self.read_all()
        except ReadingFailed as error:
            for node in nodes:
                took(node, None, str(error))
            return
        for node in nodes:
            took(node, found.get(node), "" if node in found else "metrics.k8s.io does not have it")

    def close(self) -> None:
        """Nothing is under way."""


def choose_way(kubelets: KubeletProxy, metrics_api: MetricsApi, api: ApiClient, nodes: Sequence[str]) -> UsageWay:
    """The first way that answers. Raises InputError where neither does. nodes: that are ready"""
    why_not = _why_no_proxy(kubelets, api, nodes)
    if not why_not:
        return kubelets
    logger.info("the kubelets are not asked: %s", why_not)
    try:
        metrics_api.read_all()
    except ReadingFailed as error:
        raise InputError(
            f"usage can be read neither from kubelets ({why_not}) nor from metrics.k8s.io ({error}): {_WAY_OUT}"
        ) from error
    return metrics_api


def _why_no_proxy(kubelets: KubeletProxy, api: ApiClient, nodes: Sequence[str]) -> str:
    """Empty if one of the nodes answers."""
    if ask_right(api, "get", "nodes/proxy").is_allowed is False:  # where it is not said, the answers of nodes tell
        return "no right to get nodes/proxy"
    why = "no node is ready"
    for node in nodes[:_TRIED_FIRST]:
        try:
            kubelets.read_node(node)
        except ReadingFailed as error:
            why = f"{node}: {error}"
        else:
            return ""
    return why
