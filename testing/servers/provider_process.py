"""Plays the kubelets of real nodes, or a provider of virtual ones, as a process of its own, which can die.

    with ProviderProcess(plane, "alpha-", start_seconds=0.2) as alpha:     # all nodes whose names begin so
        alpha.behave(Conduct.REJECTS)
        alpha.kill()

What it does to pods is in kubelets.py. It says of its nodes every few seconds that they are ready, as long as it
lives; that somebody else says otherwise once it is dead (the node lifecycle controller) is up to the test: `lost`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.kubelets import Act, Conduct, Kubelets
from testing.servers.watching import PODS, Address, Watching

PROVIDER_TAINT: Final = "virtual-kubelet.io/provider"
_ROOT: Final = Path(__file__).parents[2]
_IN_FLIGHT: Final = 8
_HEARTBEAT_SECONDS: Final = 5.0


def virtual_node(
    name: str, provider: str, *, cpu: int = 1000, pods: int = 10_000, labels: Mapping[str, str] | None = None
) -> Manifest:
    """A Node as virtual-kubelet registers it."""
    made = node(
        name,
        cpu=str(cpu),
        memory="4Ti",
        pods=pods,
        reserved_cpu="0m",
        labels={"type": "virtual-kubelet"} | dict(labels or {}),
        taints=[{"key": PROVIDER_TAINT, "value": provider, "effect": "NoSchedule"}],
    )
    made["metadata"]["labels"]["kubernetes.io/role"] = "agent"
    return made


def lost(writer: ClusterWriter, name: str) -> None:
    """What the node lifecycle controller writes once nobody has spoken for the node for a while."""
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    writer.patch_status({"kind": "Node", "metadata": {"name": name}}, {"conditions": [condition]})


class ProviderProcess:
    """Context manager; ready when it is entered. Ends with the process that started it.

    patience_seconds : so long it waits for an API server that is being restarted
    """

    def __init__(
        self, plane: Address, prefix: str, *, start_seconds: float = 0.0, patience_seconds: float = 0.0
    ) -> None:
        told = {"url": plane.url, "token": plane.token, "ca_file": str(plane.ca_file)}
        told |= {"prefix": prefix, "start_seconds": str(start_seconds), "patience_seconds": str(patience_seconds)}
        self._command = [sys.executable, "-m", __name__, json.dumps(told)]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Also after `kill`: it goes on with the pods that it finds."""
        # A session of its own: Ctrl-C is for whoever started it, and the end of stdin tells it.
        self._process = subprocess.Popen(
            self._command,
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._expect("ready")

    def behave(self, conduct: Conduct) -> None:
        """It does, when this returns."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{conduct.value}\n")
        self._process.stdin.flush()
        self._expect(conduct.value)

    def kill(self) -> None:
        """SIGKILL; harmless if it has ended."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if said != word:
            raise RuntimeError(f"the process that plays kubelets said {said!r}, not {word!r}")


@dataclass(slots=True)
class _Address:
    url: str
    token: str
    ca_file: Path


class _Playing:
    """The threads around Kubelets."""

    def __init__(self, writer: ClusterWriter, kubelets: Kubelets, prefix: str) -> None:
        self._writer, self._kubelets, self._prefix = writer, kubelets, prefix
        self._changed = threading.Condition()
        self._is_at_work = False

    def see(self, kind: str, pod: Manifest) -> None:
        with self._changed:
            self._kubelets.see(kind, pod, time.time())
            self._changed.notify_all()

    def behave(self, conduct: Conduct) -> None:
        """On return nothing is under way that was begun before."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_at_work)
            self._kubelets.behave(conduct, time.time())
            self._changed.notify_all()

    def run(self) -> None:
        heartbeat = 0.0
        with ThreadPoolExecutor(_IN_FLIGHT) as threads:
            while True:
                with self._changed:
                    wait = min(self._kubelets.next_due(), heartbeat) - time.time()
                    if wait > 0:
                        self._changed.wait(wait)
                    acts = self._kubelets.due(time.time())
                    self._is_at_work = bool(acts)
                if time.time() >= heartbeat:
                    self._say_ready()
                    heartbeat = time.time() + _HEARTBEAT_SECONDS
                list(threads.map(self._carry_out, acts))
                with self._changed:
                    self._is_at_work = False
                    self._changed.notify_all()

    def _carry_out(self, act: Act) -> None:
        # A pod that is gone or has changed hands meanwhile: nobody's business any more.
        metadata: dict[str, Any] = {"namespace": act.namespace, "name": act.name, "uid": act.uid}
        with suppress(RuntimeError):
            if act.status is None:
                self._writer.delete({"kind": "Pod", "metadata": metadata})
            else:
                self._writer.patch_status({"kind": "Pod", "metadata": metadata}, act.status)

    def _say_ready(self) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        with suppress(RuntimeError):
            for one in self._writer.list_all("nodes"):
                if one["metadata"]["name"].startswith(self._prefix):
                    self._writer.patch_status(one, {"conditions": [condition]})


def main(arguments: Sequence[str]) -> None:
    """Until stdin ends."""
    told = json.loads(arguments[0])
    address = _Address(told["url"], told["token"], Path(told["ca_file"]))
    kubelets = Kubelets(told["prefix"], start_seconds=float(told["start_seconds"]))
    patience = float(told["patience_seconds"])
    with ClusterWriter(address, in_flight=_IN_FLIGHT, patience_seconds=patience) as writer:
        playing = _Playing(writer, kubelets, told["prefix"])
        bound = {"fieldSelector": "spec.nodeName!="}
        with Watching(address, PODS, playing.see, bound, patience_seconds=patience):
            threading.Thread(target=playing.run, daemon=True).start()
            print("ready", flush=True)
            for line in sys.stdin:
                playing.behave(Conduct(line.strip()))
                print(line.strip(), flush=True)
            os._exit(0)  # whoever started it has ended


if __name__ == "__main__":
    main(sys.argv[1:])
