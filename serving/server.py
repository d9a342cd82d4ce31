"""Serve the application on a socket: TLS, graceful shutdown, slow clients, and liveness on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any, ClassVar, Final

import uvicorn
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from base.errors import InputError
from serving.connections import limited_protocol
from serving.openapi_parts import bare_app
from serving.protection_check import check_protection
from serving.quiet_log import quiet_libraries
from serving.server_settings import ServerOptions
from serving.tls import CertificateFiles, ReloadedCertificates, TlsListener

# Liveness on a port of its own, by a thread with an event loop of its own: a flood of requests does not delay it.
#
# On the port of the service a probe waits in line behind all connections that came before. This one only asks whether
# the service's event loop has turned lately.

_STUCK_SECONDS: Final = 30.0

logger = logging.getLogger(__name__)
_SWITCH_SECONDS = 0.001
_PROBES_END_SECONDS = 5.0

_READ_AT_ONCE = 64 * 1024
"""Bytes of a client that the kernel keeps (socket(7) doubles it): with TLS, what is read at once stays allocated."""


class Heartbeat:
    """When the event loop of the service turned last. clock: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def beat(self) -> None:
        self._last = self._clock()

    def stuck_for(self) -> float:
        """Seconds for which it has stood still; 0 = it has turned within the last 30 s."""
        since = self._clock() - self._last
        return since if since > _STUCK_SECONDS else 0.0


def probe_app(heartbeat: Heartbeat) -> FastAPI:
    """GET /healthz, and nothing else."""
    app = bare_app("forecast-scheduler probes")
    app.state.service = SimpleNamespace(draining=False)

    @app.get("/healthz")
    async def healthz() -> Response:
        if stuck := heartbeat.stuck_for():
            return PlainTextResponse(f"the event loop has stood still for {stuck:.0f} s\n", 503)
        return PlainTextResponse("ok\n")

    return app


def serve(app: FastAPI, options: ServerOptions, on_started: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then end gracefully. Raises InputError: port in use, bad TLS files."""
    ScorerServer(app, options, on_started).run()


class _Probes(ServerOptions):
    """kubelet alone asks, from one address."""

    connections: ClassVar[int] = 100


class ScorerServer:
    """The service on a socket. run() blocks, stop() may be called from anywhere, also from a signal handler.

    The socket is open and the TLS files are read when the object exists; raises InputError.
    """

    def __init__(self, app: FastAPI, options: ServerOptions, on_started: Callable[[str], None] | None = None) -> None:
        if options.tls_cert is None and (options.tls_key is not None or options.client_ca is not None):
            raise InputError("tls_key or client_ca is set without tls_cert: name the server's certificate too")
        if options.client_names and options.client_ca is None:
            raise InputError("client_names is set without client_ca: name the authority of these certificates too")
        self.options, self._app, self._on_started = options, app, on_started
        self._certificates = None
        if options.tls_cert is not None:
            files = CertificateFiles(options.tls_cert, options.tls_key, options.client_ca)
            self._certificates = ReloadedCertificates(files)
        self._heartbeat = Heartbeat()
        self._probes = None
        if options.probe_port is not None:
            self._probes = ScorerServer(probe_app(self._heartbeat), _Probes(host=options.host, port=options.probe_port))
        self._socket = _listen(options.host, options.port)
        context = None if self._certificates is None else self._certificates.context
        self._uvicorn = _Uvicorn(self._config(), context, options.header_timeout, self._stop_from_signal, self._started)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        """Where it listens, with the real port."""
        host, port = self._socket.getsockname()[:2]
        # A client cannot connect to "all addresses"; this machine's own name can be clicked on.
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        return f"{'https' if self._certificates else 'http'}://{shown}:{port}"

    @property
    def probe_url(self) -> str | None:
        """Where probes are answered as well."""
        return None if self._probes is None else self._probes.url

    def run(self) -> None:
        # Requests share the interpreter with threads that make tables; this bounds each hand-over. Python's 5 ms,
        # several times a request, are felt.
        sys.setswitchinterval(_SWITCH_SECONDS)
        with quiet_libraries(), self._answering_probes(), contextlib.closing(self._socket):
            self._uvicorn.run(sockets=[self._socket])

    @contextlib.contextmanager
    def _answering_probes(self) -> Iterator[None]:
        if self._probes is None:
            yield
            return
        thread = threading.Thread(target=self._probes.run, name="probes", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._probes.stop()
            thread.join(_PROBES_END_SECONDS)

    def stop(self) -> None:
        """Drain and end, see above; the second call does not wait."""
        with self._lock:
            loop, again, self._stopping = self._loop, self._stopping, True
        if loop is None:
            self._uvicorn.should_exit = True
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._drain, 0.0 if again else self.options.drain)

    def _stop_from_signal(self) -> None:
        # The handler runs in the main thread, between two steps of the loop: no lock, stop() might hold it here.
        again, self._stopping = self._stopping, True
        if again:
            self._uvicorn.force_exit = True
        if self._loop is None:
            self._uvicorn.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self._drain, 0.0 if again else self.options.drain)

    def _drain(self, seconds: float) -> None:
        self._app.state.service.draining = True
        assert self._loop is not None
        self._loop.call_later(seconds, setattr, self._uvicorn, "should_exit", True)

    def _started(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._probes is not None:
            self._tasks.append(self._loop.create_task(self._beat()))
        if self._certificates is not None:
            self._tasks.append(self._loop.create_task(self._follow_certificates()))
        if self._stopping:  # a signal came before the loop was known
            self._uvicorn.should_exit = True
        elif self._on_started is not None:
            self._on_started(self.url)

    async def _beat(self) -> None:
        while True:
            self._heartbeat.beat()
            await asyncio.sleep(1)

    async def _follow_certificates(self) -> None:
        assert self._certificates is not None
        while True:
            await asyncio.sleep(self.options.reload_every)
            self._certificates.refresh()

    def _config(self) -> uvicorn.Config:
        options = self.options
        return uvicorn.Config(
            self._app,
            loop="auto",
            http=limited_protocol(
                options.header_timeout, options.unread_timeout, options.connections, options.client_names
            ),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # Above the 60 s after which common load balancers, and the 90 s after which Go's clients (kube-scheduler is
            # one) close idle connections themselves: a request that meets our closing would be lost.
            timeout_keep_alive=120,
            timeout_graceful_shutdown=max(1, round(options.shutdown)),
        )


class _Uvicorn(uvicorn.Server):
    """uvicorn that reports when it has started, and ends with exit status 0 after a signal."""

    def __init__(
        self,
        config: uvicorn.Config,
        context: ssl.SSLContext | None,
        handshake_seconds: float,
        on_signal: Callable[[], None],
        on_started: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._context, self._handshake_seconds = context, handshake_seconds
        self._on_signal, self._on_started = on_signal, on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Unlike uvicorn's own, does not leave the loop's 60 s to TLS handshakes, and reports when it has started.

        Raises InputError where clients could not be limited.
        """
        config, loop = self.config, asyncio.get_running_loop()
        await check_protection()
        await self.lifespan.startup()
        self.servers = []

        kind = config.http_protocol_class
        assert issubclass(kind, HttpToolsProtocol)

        def protocol() -> HttpToolsProtocol:
            return kind(config=config, server_state=self.server_state, app_state=self.lifespan.state)

        for listener in sockets or ():
            if self._context is None:
                self.servers.append(await loop.create_server(protocol, sock=listener, backlog=config.backlog))
            else:
                self.servers.append(TlsListener(listener, protocol, self._context, self._handshake_seconds))  # type: ignore[arg-type]
        self.started = True
        self._on_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's own, does not raise the signal again: a graceful end is a success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            self._on_signal()

        before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def only_this_machine(host: str) -> bool:
    """Return whether only processes of this machine can reach a server that listens on this address.

    Raises InputError for a name that cannot be looked up: it may be a public address a moment later.
    """
    found = ipaddress.ip_address(str(_addresses(host, 0)[0][4][0]).partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def _addresses(host: str, port: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InputError(f"host {host!r} is not an address of this machine: use 127.0.0.1 or 0.0.0.0") from error


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket. Raises InputError with the way out."""
    family, _, _, _, address = _addresses(host, port)[0]
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:  # IPv6 is off
        raise InputError(f"host {host!r} is not an address of this machine: use 127.0.0.1 or 0.0.0.0") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _READ_AT_ONCE)  # of the connections, too
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another port, or 0 for any free one"
        ) from error
    listener.setblocking(False)
    return listener
