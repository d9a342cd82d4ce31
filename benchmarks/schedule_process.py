"""`forecast-scheduler schedule` as a process that has read its cluster and may not begin: the Lease is not free yet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testing.processes.process_figures import wait_until_at_rest
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api
from testing.servers.control_plane.control_plane import ControlPlane

OUR_NAME: Final = "forecast-scheduler"
_NAMESPACE: Final = "forecast-scheduler"
_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{_NAMESPACE}/leases"
_START_SECONDS: Final = 300.0


def prepare(plane: ControlPlane) -> None:
    """The namespace of the Lease, which the benchmark takes."""
    with Api(plane) as api:
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        api.request("POST", _LEASES, {"metadata": {"name": OUR_NAME}, "spec": _held("benchmark")})


class HeldProcess:
    """Context manager around a process that waits until `release`. To be used one after the other.

    options : of the settings under `schedule`
    """

    def __init__(
        self, plane: ControlPlane, directory: Path, *, models: Path, options: Mapping[str, Any] | None = None
    ) -> None:
        # Series of all nodes would be read for nothing.
        quiet = {"node_metrics": False, "service_metrics": False}
        self._plane = plane
        self.process = ScorerProcess(
            directory,
            *("--kubeconfig", plane.kubeconfig, "--models", models, "--domain", ""),
            settings={"scorer": quiet, "schedule": dict(options or {})},
            command="schedule",
            ready=False,
        )

    def __enter__(self) -> Self:
        self._hold("benchmark")
        self.process.__enter__()
        try:
            self.process.wait_ready(_START_SECONDS)
            wait_until_at_rest(self.pid)
        except BaseException:
            self.process.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.__exit__(kind, error, traceback)

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self.process.process is not None
        return self.process.process.pid

    def release(self) -> None:
        """It takes the Lease within a second, and begins two seconds later."""
        self._hold("")

    def end_of_log(self) -> str:
        """What it said last."""
        return self.process.log[-4000:]

    def _hold(self, holder: str) -> None:
        with Api(self._plane) as api:
            api.request("PATCH", f"{_LEASES}/{OUR_NAME}", {"spec": _held(holder)})


def _held(holder: str) -> dict[str, Any]:
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"holderIdentity": holder, "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now}
