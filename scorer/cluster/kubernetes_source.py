"""The live cluster: nodes, pods, ReplicaSets and Jobs from the API server into a sink, one thread per kind."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable

from kubernetes.client import ApiClient

from scorer.cluster.decoding import SCORED_KINDS, Kind
from scorer.cluster.kubernetes_contract import KindStatus, Sink, Timing
from scorer.cluster.kubernetes_watcher import KindWatcher

__all__ = ["KindStatus", "KubernetesSource", "Sink", "Timing"]


class KubernetesSource:
    """List and watch, resumed after disconnects, restarts of the API server and forgotten history.

    Each kind is replaced by complete lists and changed event by event in the server's order; between kinds there is no
    order: a pod may come before its node or its ReplicaSet.

    page_size : objects per page of a list
    clock     : unix seconds
    rng       : for the pauses and the lengths of streams
    """

    def __init__(
        self,
        api_client: ApiClient,
        sink: Sink,
        *,
        kinds: Iterable[Kind] = SCORED_KINDS,
        page_size: int = 500,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        seeds = rng or random.Random()
        self._watchers = {
            kind: KindWatcher(
                api_client,
                sink,
                kind,
                page_size=page_size,
                timing=timing or Timing(),
                clock=clock,
                rng=random.Random(seeds.getrandbits(64)),
            )
            for kind in kinds
        }
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to list. Once only: make a new source to start over."""
        if self._threads:
            raise RuntimeError("this source has been started already")
        self._threads = [
            threading.Thread(target=watcher.run, name=f"watch-{kind.value}", daemon=True)
            for kind, watcher in self._watchers.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End all threads; one that is just connecting is left behind as a daemon after `timeout` seconds."""
        for watcher in self._watchers.values():
            watcher.stop()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def synced(self) -> bool:
        """Whether a complete list of every kind has been applied; it stays true from then on."""
        return all(watcher.synced.is_set() for watcher in self._watchers.values())

    def wait_synced(self, timeout: float) -> bool:
        """Wait until `synced`, at most `timeout` seconds; returns it."""
        deadline = time.monotonic() + timeout
        return all(watcher.synced.wait(max(0.0, deadline - time.monotonic())) for watcher in self._watchers.values())

    def status(self) -> dict[Kind, KindStatus]:
        """How the watch of each kind is doing."""
        return {kind: watcher.status() for kind, watcher in self._watchers.items()}
