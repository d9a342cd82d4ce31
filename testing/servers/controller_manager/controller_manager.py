"""A real kube-controller-manager beside a ControlPlane: Deployments, ReplicaSets and disruption budgets, and no more.

with ControlPlane() as plane, ControllerManager(plane):
    ...
"""

from __future__ import annotations

import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.process import ServerProcess
from testing.servers.controller_manager.binary import kube_controller_manager
from testing.servers.prometheus import free_port

_START_SECONDS: Final = 60

WORKLOADS: Final = (
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "garbage-collector-controller",
)


class ControllerManager:
    """Context manager. controllers: that run; with all of them nodes without a kubelet would lose their pods.
    arguments: further flags."""

    def __init__(
        self, plane: ControlPlane, controllers: Sequence[str] = WORKLOADS, arguments: Sequence[str] = ()
    ) -> None:
        port = free_port()
        self._url = f"https://127.0.0.1:{port}/healthz"
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self.log = plane.directory / f"kube-controller-manager-{secrets.token_hex(4)}.log"
        self._process = ServerProcess(
            [
                str(kube_controller_manager()),
                f"--kubeconfig={plane.kubeconfig}",
                f"--authentication-kubeconfig={plane.kubeconfig}",
                "--authentication-skip-lookup=true",
                f"--authorization-kubeconfig={plane.kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--tls-cert-file={plane.ca_file}",
                f"--tls-private-key-file={plane.ca_file}",
                "--leader-elect=false",
                "--kube-api-qps=1000",
                "--kube-api-burst=1000",
                f"--controllers={','.join(controllers)}",
                "--v=2",
                *arguments,
            ],
            self.log,
        )

    def __enter__(self) -> Self:
        self._process.start(self._answers, _START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self._url, timeout=5, context=self._tls) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False
