"""metrics.k8s.io on loopback, as metrics-server answers it for pods: what HorizontalPodAutoscalers scale by."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

GROUP: Final = "metrics.k8s.io"
_VERSION: Final = f"{GROUP}/v1beta1"


class MetricsServer:
    """Context manager. port: where it answers by HTTPS

    cores       : of each pod of the one namespace that is asked for, by name; all pods are of one service
    certificate : and its key
    """

    def __init__(self, cores: Callable[[], Mapping[str, float]], certificate: tuple[Path, Path]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = json.dumps(_pods(cores()) if "/pods" in self.path else _RESOURCES).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificate)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.port = self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


_RESOURCES: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": _VERSION,
    "resources": [
        {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
    ],
}


def _pods(cores: Mapping[str, float]) -> dict[str, Any]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    items = [
        {
            "metadata": {"name": name, "namespace": "shop"},
            "timestamp": now,
            "window": "10s",
            "containers": [{"name": "main", "usage": {"cpu": f"{round(value * 1e9)}n", "memory": "100Mi"}}],
        }
        for name, value in cores.items()
    ]
    return {"kind": "PodMetricsList", "apiVersion": _VERSION, "metadata": {}, "items": items}
