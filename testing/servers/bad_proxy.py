"""A loopback HTTP proxy in front of a real Prometheus that misbehaves on request."""

from __future__ import annotations

import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

Behaviour = Callable[[int, str], str]
"""(number of the request from 0, its path with query) -> pass, drop, text, half, slow, drip, an HTTP status as text, or
the name of a lie."""

Refusal = Callable[[str, str, Mapping[str, str], bytes], str]
"""(method, path with query, headers by names in small letters, body) -> why a gateway refuses it, "" = it does not."""

Lie = Callable[[bytes], bytes]
"""The body of the real server -> what is sent in its place."""

_SLOW_SECONDS = 0.5


def first(*actions: str) -> Behaviour:
    """These for the first requests, then pass."""
    return lambda number, path: actions[number] if number < len(actions) else "pass"


class BadProxy:
    """Context manager. `requests` counts what came in, `headers` are those of the last request.

    token, password : demanded if set ("Bearer <token>", basic user:password)
    refusal         : what a gateway that looks at whole requests refuses, with 403 and its words
    certificate     : PEM file with certificate and key; speaks TLS if set
    client_authority: PEM file of who signs clients' certificates; asks for one if set
    """

    def __init__(
        self,
        upstream: str,
        behaviour: Behaviour = first(),  # noqa: B008 - a pure function
        *,
        authorization: str = "",
        refusal: Refusal | None = None,
        certificate: Path | None = None,
        client_authority: Path | None = None,
        lies: Mapping[str, Lie] | None = None,
    ) -> None:
        self.lies = lies or {}
        self.upstream, self.behaviour, self.authorization = upstream, behaviour, authorization
        self.refusal = refusal
        self.requests: list[str] = []
        self.headers: dict[str, str] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            if client_authority is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(client_authority)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_action(self, path: str, headers: Iterable[tuple[str, str]]) -> str:
        """What to do with a request."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(path)
            self.headers = {name.lower(): value for name, value in headers}
        if self.authorization and self.headers.get("authorization") != self.authorization:
            return "401"
        return self.behaviour(number, path)


def self_signed(directory: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody trusts, with its key, in one PEM file."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "proxy.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


def _handler(proxy: BadProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body, sent after the header, waits 40 ms for an ACK

        def do_GET(self) -> None:
            action = proxy.next_action(self.path, self.headers.items())
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if proxy.refusal is not None and (
                why := proxy.refusal(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, sent)
            ):
                self._answer(403, "application/json", json.dumps({"message": why}).encode())
                return
            if action == "slow":
                time.sleep(_SLOW_SECONDS)
            if action == "drop":
                self.close_connection = True
                return
            if action == "text":
                self._answer(200, "text/html", b"<html>Please log in</html>")
                return
            if action.isdigit():
                error = {"503": "shutting down", "422": "query processing would load too many samples into memory"}
                body = b'{"status":"error","errorType":"execution","error":"%s"}' % error.get(action, "no").encode()
                self._answer(int(action), "application/json", body)
                return
            try:
                with urllib.request.urlopen(proxy.upstream + self.path, sent or None, timeout=60) as answer:
                    status, kind, body = answer.status, answer.headers["Content-Type"], answer.read()
            except urllib.error.HTTPError as error:
                status, kind, body = error.code, error.headers["Content-Type"], error.read()
            except OSError:
                self._answer(502, "text/plain", b"bad gateway")
                return
            if status == 200 and action in proxy.lies:
                body = proxy.lies[action](body)
            if action == "drip":
                self._drip(kind, body)
                return
            self._answer(status, kind, body[: len(body) // 2] if action == "half" else body)

        do_POST = do_GET  # noqa: N815 - the name http.server looks for

        def _drip(self, kind: str, body: bytes) -> None:
            """A byte now and then, for less than a minute."""
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for number in range(min(len(body), 500)):
                try:
                    self.wfile.write(body[number : number + 1])
                except OSError:  # the other side has had enough
                    break
                time.sleep(0.1)
            self.close_connection = True

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
