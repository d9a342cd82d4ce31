"""Pods, plugins and sessions for tests of binding."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kubernetes import client

from kube.objects.objects import PodInfo, QosClass
from kube.session.api_session import ApiSession
from scheduler.binding.outcome import BindingOutcome, Reserved
from testing import objects
from testing.servers.cluster_objects import Manifest
from testing.waiting import eventually

NOBODY = "http://127.0.0.1:9"


def pod_info(name: str, *, namespace: str = "default", uid: str = "", scheduler_name: str = "ours") -> PodInfo:
    return objects.pod_info(
        name,
        uid=uid or f"uid-{name}",
        namespace=namespace,
        nonzero_requests=(0.0, 0.0),
        qos=QosClass.BEST_EFFORT,
        scheduler_name=scheduler_name,
    )


def pod_of(created: Manifest) -> PodInfo:
    """Return the pod of what the API server returned when it was created."""
    metadata = created["metadata"]
    return pod_info(metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])


def reserved(name: str, node: str = "node-1") -> Reserved:
    return Reserved(pod_info(name), node)


@dataclass
class Done:
    """What was told of each pod, by UID; all of it, were it told twice."""

    told: dict[str, list[BindingOutcome]] = field(default_factory=dict)
    threads: set[str] = field(default_factory=set)

    def __call__(self, reserved: Reserved, outcome: BindingOutcome) -> None:
        self.threads.add(threading.current_thread().name)
        self.told.setdefault(reserved.pod.uid, []).append(outcome)

    def wait(self, count: int, seconds: float = 60.0) -> None:
        """Until so many pods were told about."""
        assert eventually(lambda: len(self.told) >= count, seconds), f"{len(self.told)} of {count}"

    def only(self, uid: str) -> BindingOutcome:
        (outcome,) = self.told[uid]
        return outcome


@contextmanager
def session_to(url: str = NOBODY, **settings: object) -> Iterator[ApiSession]:
    """A session that runs. url: plain HTTP; by default nobody answers there."""
    configuration = client.Configuration()
    configuration.host = url
    configuration.proxy = None
    session = ApiSession(client.ApiClient(configuration), **settings)  # type: ignore[arg-type]
    session.start()
    try:
        yield session
    finally:
        session.stop()


@dataclass(frozen=True)
class Scripted:
    """What a scripted server answers; drop: it closes the connection instead."""

    status: int = 201
    body: object = field(default_factory=dict)
    headers: Sequence[tuple[str, str]] = ()
    drop: bool = False


@contextmanager
def scripted_server(script: Callable[[str, str, bytes, dict[str, str]], Scripted]) -> Iterator[str]:
    """A server on loopback that answers what `script` says to method, path, body and headers (names in lower
    case; `:port` is the client's)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body, sent after the header, waits 40 ms for an ACK

        def _handle(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            headers[":port"] = str(self.client_address[1])
            answer = script(self.command, self.path, content, headers)
            if answer.drop:
                self.close_connection = True
                return
            body = json.dumps(answer.body).encode()
            with suppress(OSError):
                self.send_response(answer.status)
                for name, value in [*answer.headers, ("Content-Length", str(len(body)))]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815 - the names http.server looks for

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
