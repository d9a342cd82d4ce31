"""TLS of a service: certificates taken over again when their files change, and a bound to handshakes under way."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from base.errors import InputError
from serving.freed_memory import HeapTrim
from serving.quiet_log import QuietLog

logger = logging.getLogger(__name__)

MOST_HANDSHAKES: Final = 300
"""At once. Past it, the one that has lasted for the longest is hung up on; one takes some milliseconds."""

_OF_ONE: Final = 56 * 1024
"""Bytes that it takes."""

_AT_ONCE: Final = 50
"""Connections accepted before others are served on."""

_PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """PEM files. certificate: the chain; key may be in it; client_ca: who signs clients, who must then show one."""

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """Those that are set."""
        return tuple(path for path in (self.certificate, self.key, self.client_ca) if path is not None)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Raises InputError: unreadable, no certificate, or a key of another certificate."""
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except (OSError, ssl.SSLError) as error:
            names = ", ".join(map(str, self.paths))
            raise InputError(
                f"TLS files {names} cannot be used ({error.strerror or error}): certificate, key and client authority "
                "must be readable PEM files, and the key that of the certificate"
            ) from error


class ReloadedCertificates:
    """A server's SSLContext that follows its files.

    A new certificate counts for connections made from then on. A new client authority is trusted in addition to the old
    one: OpenSSL cannot forget one, so withdrawing an authority takes a restart.
    """

    def __init__(self, files: CertificateFiles) -> None:
        self.files = files
        self._seen = self._stamps()
        self.context = _new_context(files)

    def refresh(self) -> bool:
        """Take over changed files; True if so. What cannot be used is logged, and the old certificate stays."""
        try:
            stamps = self._stamps()
            if stamps == self._seen:
                return False
            self._seen = stamps
            # Tried elsewhere first: a key that does not fit would leave the live context with half of each.
            _new_context(self.files)
            self.files.load_into(self.context)
        except (InputError, OSError) as error:
            logger.warning("the TLS certificate stays as it was: %s", error)
            return False
        logger.info("TLS certificate read again from %s", self.files.certificate)
        return True

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        try:
            found = [path.stat() for path in self.files.paths]
        except OSError as error:
            raise InputError(f"TLS file {error.filename} cannot be read ({error.strerror}): name a PEM file") from error
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)


def _new_context(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files.load_into(context)
    if files.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class TlsListener:
    """Serves until it is closed, as asyncio.Server does. seconds: a handshake has to end by then."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], HttpToolsProtocol],
        context: ssl.SSLContext,
        seconds: float,
    ) -> None:
        self._listener, self._protocol, self._context, self._seconds = listener, protocol, context, seconds
        self._loop = asyncio.get_running_loop()
        self._agreeing: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._log, self._heap = QuietLog(logger), HeapTrim()
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept no further connections. Secured ones stay."""
        self._loop.remove_reader(self._listener)
        for task in self._agreeing:
            task.cancel()

    async def wait_closed(self) -> None:
        """No handshake is under way any more."""
        await asyncio.gather(*self._agreeing, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptors are left
                self._log.log(logging.ERROR, "cannot accept connections: %s", error.strerror)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE_SECONDS, self._accept_again)
                return
            connection.setblocking(False)
            self._heap.note(_OF_ONE)
            task = self._loop.create_task(self._agree(connection))
            self._agreeing[task] = None
            task.add_done_callback(lambda done: self._agreeing.pop(done, None))
            if len(self._agreeing) > MOST_HANDSHAKES:
                oldest = next(iter(self._agreeing))
                self._agreeing.pop(oldest)
                oldest.cancel()

    def _accept_again(self) -> None:
        if self._listener.fileno() >= 0:  # it is still open
            self._loop.add_reader(self._listener, self._accept)

    async def _agree(self, connection: socket.socket) -> None:
        protocol, agreed = self._protocol(), False
        try:
            with suppress(OSError):  # the event loop has logged it
                await self._loop.connect_accepted_socket(
                    lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=self._seconds
                )
                agreed = True
        finally:
            if not agreed:
                protocol.parser = None  # type: ignore[assignment]  # each of them keeps the other
