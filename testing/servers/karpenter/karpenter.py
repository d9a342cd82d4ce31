"""A real Karpenter beside a ControlPlane; its kwok provider makes Node objects without machines.

with ControlPlane() as plane, Karpenter(plane):
    ...
"""

from __future__ import annotations

import os
import secrets
import urllib.error
import urllib.request
from types import TracebackType
from typing import Final, Self

from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.process import ServerProcess
from testing.servers.karpenter.binary import karpenter
from testing.servers.prometheus import free_port

_START_SECONDS: Final = 120


class Karpenter:
    """Context manager. The definitions of Karpenter must be served before it starts.

    log : file with its output
    """

    def __init__(self, plane: ControlPlane) -> None:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/healthz"
        self.log = plane.directory / f"karpenter-{secrets.token_hex(4)}.log"
        self._process = ServerProcess(
            [
                # The process has no flag for it.
                "/usr/bin/env",
                f"KUBECONFIG={plane.kubeconfig}",
                "SYSTEM_NAMESPACE=kube-system",
                f"PATH={os.environ['PATH']}",
                str(karpenter()),
                f"--health-probe-port={port}",
                f"--metrics-port={free_port()}",
                "--disable-leader-election=true",
                "--log-level=info",
                "--batch-idle-duration=1s",
                "--feature-gates=CapacityBuffer=true",
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

    def end_of_log(self, n_characters: int = 4000) -> str:
        """What it said last, for the message of a test that fails."""
        return self.log.read_text(errors="replace")[-n_characters:]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self._url, timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False
