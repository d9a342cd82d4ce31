"""Clients that want to fill a service's memory or stop its event loop, and what is seen of the service meanwhile."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from testing.processes.scorer_process import ROOT, ScorerProcess

MIB = 2**20
_PART = 256 * 1024


def memory_limit(part: str) -> int:
    """Bytes that the container of this part may take, by deploy/base."""
    number = str(_container(part)["resources"]["limits"]["memory"])
    return int(number[:-2]) * {"Mi": 2**20, "Gi": 2**30}[number[-2:]]


def liveness_probe(part: str) -> tuple[float, int]:
    """Seconds that the kubelet waits for an answer, and the failures in succession for a restart."""
    probe = _container(part)["livenessProbe"]
    return float(probe["timeoutSeconds"]), int(probe["failureThreshold"])


def _container(part: str) -> dict[str, Any]:
    for document in yaml.safe_load_all((ROOT / "deploy" / "base" / part / f"{part}.yaml").read_text()):
        if document is not None and document["kind"] == "Deployment":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            return dict(container)
    raise KeyError(part)


def rss(process: ScorerProcess) -> int:
    """Bytes of memory that the process has now."""
    assert process.process is not None
    lines = Path(f"/proc/{process.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def settled_rss(process: ScorerProcess) -> int:
    """Bytes of memory that the process has once it has fallen no further for a while."""
    lowest, looks = rss(process), 0
    while looks < _LOOKS:
        time.sleep(_LOOK_SECONDS)
        now = rss(process)
        lowest, looks = (now, 0) if now < 0.99 * lowest else (lowest, looks + 1)
    return lowest


_LOOKS: Final = 60
_LOOK_SECONDS: Final = 0.2
"""Twelve seconds in all: longer than a service waits before it gives back what was freed (serving/freed_memory.py)."""


def flood(url: str, path: str, body: bytes, *, clients: int, unsent: int, seconds: float) -> int:
    """So many clients at a time send this body but its last `unsent` bytes, in parts by turns; returns how many bodies.

    Who is hung up on, or has an answer, begins again. At the end everybody hangs up.
    """
    # With another Host each would be refused by its header, and hold nothing.
    head = f"POST {path} HTTP/1.1\r\nHost: {httpx.URL(url).netloc.decode()}\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    parts = [head.encode() + body[:_PART], *(body[at : at + _PART] for at in range(_PART, len(body), _PART))]
    parts[-1] = parts[-1][: len(parts[-1]) - unsent]
    deadline, begun = time.monotonic() + seconds, 0
    with ExitStack() as stack:
        open_: list[tuple[socket.socket, int]] = []
        while time.monotonic() < deadline:
            while len(open_) < clients:
                open_.append((stack.enter_context(_connected(url)), 0))
                begun += 1
            open_ = [(one, sent + 1) for one, sent in open_ if _sent(one, parts, sent)]
            time.sleep(0.001)
    return begun


def _connected(url: str) -> socket.socket:
    """With TLS, no certificate is checked."""
    parsed = httpx.URL(url)
    made = socket.create_connection((parsed.host, parsed.port or 80), timeout=15)
    if parsed.scheme != "https":
        return made
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(made)


def _sent(one: socket.socket, parts: list[bytes], sent: int) -> bool:
    """Whether this client goes on: it is not hung up on, and has no answer."""
    try:
        if sent < len(parts):
            one.settimeout(2)
            one.sendall(parts[sent])
            return True
        one.settimeout(0)
        one.recv(65_536)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        pass
    one.close()
    return False


@dataclass
class Watch:
    """Context manager: a thread that asks for /healthz and looks at the memory; another that asks `question`.

    probes  : where the kubelet asks for /healthz as shipped (`serving.probe_port`)
    slow    : seconds that each /healthz took there
    highest : bytes of memory
    wrong   : what an honest client got that it should not
    """

    process: ScorerProcess
    probes: str
    path: str = ""
    question: Mapping[str, object] = field(default_factory=dict)
    slow: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    answers: int = 0
    highest: int = 0

    def __enter__(self) -> Watch:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._probe, self._look, self._ask)]
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop.set()
        for one in self._threads:
            one.join(30)

    @property
    def p99(self) -> float:
        """Seconds within which 99 % of the probes were answered."""
        return sorted(self.slow)[min(len(self.slow) - 1, int(len(self.slow) * 0.99))]

    def _probe(self) -> None:
        while not self._stop.wait(0.01):
            began = time.perf_counter()
            try:
                with httpx.Client(timeout=30, verify=False) as client:  # no certificates are read
                    if client.get(f"{self.probes}/healthz").status_code != 200:
                        self.wrong.append("/healthz")
            except httpx.HTTPError as error:
                self.wrong.append(f"/healthz {error!r}")
            self.slow.append(time.perf_counter() - began)

    def _look(self) -> None:
        while not self._stop.wait(0.005):
            self.highest = max(self.highest, rss(self.process))

    def _ask(self) -> None:
        if not self.path:
            return
        with httpx.Client(timeout=30, verify=False) as client:
            while not self._stop.wait(0.05):
                try:
                    answer = client.post(self.process.url + self.path, json=self.question)
                except httpx.HTTPError as error:
                    self.wrong.append(repr(error))
                    continue
                self.answers += 1
                if answer.status_code != 200:
                    self.wrong.append(f"{answer.status_code} {answer.text}")
