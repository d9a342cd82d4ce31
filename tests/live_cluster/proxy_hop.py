"""The last hop of the API server's proxy of Services, to addresses of this machine.

The API server sends proxied requests to no loopback address. So a small server in front of it does that hop: it asks
the real API server about each request, which says 403, or 503 for a Service without endpoints, and only then passes it
on, without Authorization, as the API server does. Logs of pods, which no kubelet has here, are served in the same way.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

from testing.servers.control_plane.control_plane import ControlPlane

_PROXIED = re.compile(r".*/services/https?:([^:]+):[^/]+/proxy(/.*)")
_LOG = re.compile(r".*/pods/([^/]+)/log\b")


@contextmanager
def passing_on(
    plane: ControlPlane, services: Mapping[str, str], logs: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address of the server in front of the API server.

    services : addresses by the name of the Service; one that does not listen has no endpoints
    logs     : by pod
    """
    pool = urllib3.PoolManager(ca_certs=str(plane.ca_file), retries=False)

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            answer = pool.request(self.command, plane.url + self.path, body=body, headers=headers)
            status, content = answer.status, answer.data
            if status == 503 and (proxied := _PROXIED.match(self.path)) and proxied[1] in services:
                assert b"no endpoints available" in content
                headers.pop("Authorization")
                try:
                    answer = pool.request(self.command, services[proxied[1]] + proxied[2], body=body, headers=headers)
                    status, content = answer.status, answer.data
                except urllib3.exceptions.HTTPError:
                    pass  # what the API server said stands
            elif status not in (401, 403) and (of_pod := _LOG.match(self.path)) and of_pod[1] in (logs or {}):
                status, content = 200, (logs or {})[of_pod[1]].encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _pass_on  # noqa: N815 - names of http.server

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
