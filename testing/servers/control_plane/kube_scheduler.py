"""A real kube-scheduler beside a ControlPlane, with extenders and profiles as a test wants them.

with ControlPlane() as plane, KubeScheduler(plane, extenders=[extender(server.url, filterVerb="filter")]):
    ...
"""

from __future__ import annotations

import json
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testing.servers.control_plane.binaries import binary
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.process import ServerProcess
from testing.servers.prometheus import free_port
from testing.timings import timed

_START_SECONDS = 60


def extender(url: str, **settings: Any) -> dict[str, Any]:
    """An entry of `extenders` of a KubeSchedulerConfiguration; nodeCacheCapable unless told otherwise."""
    return {"urlPrefix": url, "nodeCacheCapable": True, "httpTimeout": "10s"} | settings


class KubeScheduler:
    """Context manager. May be stopped, killed and started any number of times; port and configuration stay.

    extenders  : entries of `extenders` (see `extender`)
    profiles   : entries of `profiles`; None = the default one
    percentage : percentageOfNodesToScore; None = kube-scheduler's own, which is all nodes below 100
    arguments  : further flags, such as --vmodule=schedule_one=10
    settings   : further fields of the KubeSchedulerConfiguration, such as podMaxBackoffSeconds
    program    : with further plugins compiled in; None = kube-scheduler as it is released
    log        : file with its output, all starts one after the other
    url        : of /healthz and /metrics (which takes the plane's token); its certificate is the plane's
    """

    def __init__(
        self,
        plane: ControlPlane,
        extenders: Sequence[Mapping[str, Any]] = (),
        profiles: Sequence[Mapping[str, Any]] | None = None,
        percentage: int | None = None,
        *,
        verbosity: int = 2,
        arguments: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        program: Path | None = None,
    ) -> None:
        configuration: dict[str, Any] = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            # The default of 50 requests a second would hide everything else.
            "clientConnection": {"kubeconfig": str(plane.kubeconfig), "qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False},
            "extenders": [dict(one) for one in extenders],
        }
        if profiles is not None:
            configuration["profiles"] = [dict(one) for one in profiles]
        if percentage is not None:
            configuration["percentageOfNodesToScore"] = percentage
        port, name = free_port(), f"kube-scheduler-{secrets.token_hex(4)}"
        path = plane.directory / f"{name}.json"
        path.write_text(json.dumps(configuration | dict(settings or {}), indent=2))
        self.url = f"https://127.0.0.1:{port}"
        self.log: Path = plane.directory / f"{name}.log"
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._process = ServerProcess(
            [
                str(program or binary("kube-scheduler")),
                f"--config={path}",
                f"--authentication-kubeconfig={plane.kubeconfig}",
                "--authentication-skip-lookup=true",  # of a config map that a real cluster has, and complaints about it
                f"--authorization-kubeconfig={plane.kubeconfig}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--tls-cert-file={plane.ca_file}",
                f"--tls-private-key-file={plane.ca_file}",
                f"--v={verbosity}",
                *arguments,
            ],
            self.log,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start and wait until it knows the objects that are there; raises RuntimeError with the end of its output."""
        # /readyz waits for the informers, /healthz would not: a pod posted right after it could meet an empty cluster.
        with timed("kube-schedulers"):
            self._process.start(lambda: self._answers("/healthz") and self._answers("/readyz"), _START_SECONDS)

    def stop(self) -> None:
        """Let it end in good order."""
        self._process.stop()

    def kill(self) -> None:
        """End it now, as a crash would."""
        self._process.kill()

    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process.is_running()

    def end_of_log(self, n_characters: int = 4000) -> str:
        """What it said last, for the message of a test that fails."""
        return self.log.read_text(errors="replace")[-n_characters:] if self.log.exists() else ""

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5, context=self._tls) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False
