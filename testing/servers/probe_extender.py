"""A scheduler extender that shows what kube-scheduler found out about a pod, and lets nothing be bound.

kube-scheduler calls /filter with the nodes that its plugins left over, and /bind with the node that it chose. The
answer here is always an error, so that the pod is not bound and the cluster stays as it is. Where no node is left over
neither is called: the pod's PodScheduled condition tells. /prioritize answers the points that a test has set.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from testing.servers.control_plane.kube_scheduler import extender

PROBE_ERROR: Final = "shown to the probe extender"


class ProbeExtender:
    """Context manager.

    sent   : names of the nodes that /filter was called with last, by UID of the pod
    chosen : node that /bind was called with last, by UID of the pod
    points : answer of /prioritize by node; the others are left out of it
    """

    def __init__(self) -> None:
        self.sent: dict[str, frozenset[str]] = {}
        self.chosen: dict[str, str] = {}
        self.points: dict[str, int] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def settings(self, *verbs: str) -> dict[str, Any]:
        """Its entry in a KubeSchedulerConfiguration, for some of filter, prioritize and bind."""
        called: dict[str, Any] = {f"{verb}Verb": verb for verb in verbs}
        if "prioritize" in verbs:
            called["weight"] = 1
        return extender(self.url, **called)

    def answer(self, verb: str, arguments: dict[str, Any]) -> Any:
        """What to reply."""
        if verb == "prioritize":
            return [{"Host": node, "Score": points} for node, points in self.points.items()]
        if verb == "bind":
            self.chosen[arguments["PodUID"]] = arguments["Node"]
        else:
            self.sent[arguments["Pod"]["metadata"]["uid"]] = frozenset(arguments["NodeNames"])
        return {"Error": PROBE_ERROR}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(probe: ProbeExtender) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body, sent after the header, waits 40 ms for an ACK

        def do_POST(self) -> None:
            arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(probe.answer(self.path.strip("/"), arguments)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
