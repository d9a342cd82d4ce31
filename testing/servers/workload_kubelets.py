"""Kubelets for pods of Deployments on a real API server: bound pods get ready, and pods that terminate go."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Self

from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.watching import PODS, Watching


def is_ready(pod: Manifest) -> bool:
    """Return whether a pod is ready and stays."""
    conditions = pod.get("status", {}).get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


class WorkloadKubelets:
    """Context manager.

    makes_ready : False = bound pods stay as they are
    gone        : pods that were seen to terminate or go, by UID
    fewest      : of each label `app`, the fewest pods that were ready at once since `count_from_now`
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane, self.makes_ready = plane, True
        self._pods: dict[str, Manifest] = {}
        self._lock, self._ended = threading.Lock(), False
        self.gone: dict[str, Manifest] = {}
        self.fewest: dict[str, int] = {}
        self._counts = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._writer = self._stack.enter_context(ClusterWriter(self._plane, in_flight=4, patience_seconds=30))
        self._stack.enter_context(Watching(self._plane, PODS, self._see, patience_seconds=60))
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._ended = True
        self._thread.join(30)
        self._stack.close()

    def count_from_now(self) -> None:
        """Begin to count ready pods, and forget the pods that went."""
        with self._lock:
            self._counts = True
            self.gone.clear()
            self.fewest = {app: self._n_ready(app) for app in {_app(one) for one in self._pods.values()}}

    def _see(self, kind: str, pod: Manifest) -> None:
        with self._lock:
            self._pods[pod["metadata"]["uid"]] = pod
            if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
                self.gone[pod["metadata"]["uid"]] = pod
            if kind == "DELETED":
                del self._pods[pod["metadata"]["uid"]]
            if self._counts:
                app = _app(pod)
                self.fewest[app] = min(self.fewest.get(app, 0), self._n_ready(app))

    def _n_ready(self, app: str) -> int:
        return sum(_app(one) == app and is_ready(one) for one in self._pods.values())

    def _run(self) -> None:
        while not self._ended:
            with self._lock:
                pods = list(self._pods.values())
            for pod in pods:
                with suppress(RuntimeError):  # it has just changed
                    self._tend({"kind": "Pod"} | pod)
            time.sleep(0.1)

    def _tend(self, pod: Manifest) -> None:
        conditions = {one["type"]: one for one in pod["status"].get("conditions", [])}
        if "deletionTimestamp" in pod["metadata"]:
            self._writer.delete(pod)
        elif pod["spec"].get("nodeName") and self.makes_ready and conditions.get("Ready", {}).get("status") != "True":
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            ready = [one for type_, one in conditions.items() if type_ != "Ready"]
            ready.append({"type": "Ready", "status": "True", "lastTransitionTime": now})
            self._writer.patch_status(pod, {"phase": "Running", "startTime": now, "conditions": ready})


def _app(pod: Manifest) -> str:
    return str(pod["metadata"].get("labels", {}).get("app", ""))
