"""How aiohttp is to speak to an API server: TLS, proxy and credentials from what the official client loaded, and the
event loop of the requests.

uvloop's loop where it is installed, asyncio's own otherwise, a tenth slower. Both give a TLS connection that is being
closed 30 s to say goodbye. One that was given up because it fell silent will not, and would outlive the loop: here it
has a moment.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from kubernetes import client
from urllib3.util.ssl_ import create_urllib3_context

from base.errors import InputError

GOODBYE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class ApiConnection:
    """
    host      : scheme, name and port, perhaps a path, without a slash at its end
    tls       : None = plain HTTP
    arguments : of every request
    """

    host: str
    tls: ssl.SSLContext | None
    arguments: dict[str, Any]


def connection_of(configuration: client.Configuration) -> ApiConnection:
    """Raises InputError where a certificate cannot be read."""
    host = str(configuration.host).rstrip("/")
    arguments: dict[str, Any] = {"allow_redirects": False}
    if configuration.tls_server_name:
        arguments["server_hostname"] = configuration.tls_server_name
    if configuration.proxy:
        arguments["proxy"] = configuration.proxy
        if configuration.proxy_headers:
            arguments["proxy_headers"] = configuration.proxy_headers
    try:
        tls = _tls(configuration) if host.startswith("https:") else None
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = ", ".join(str(f) for f in (configuration.ssl_ca_cert, configuration.cert_file) if f)
        raise InputError(
            f"the certificates for {host} cannot be used ({files}: {error}): `kubectl config view` shows what is set"
        ) from error
    return ApiConnection(host, tls, arguments)


def _tls(configuration: client.Configuration) -> ssl.SSLContext:
    """As urllib3 makes it for the official client: both must trust the same servers."""
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE)
    if configuration.assert_hostname is False:
        context.check_hostname = False
    if configuration.ssl_ca_cert or configuration.ca_cert_data:
        context.load_verify_locations(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    else:
        context.load_default_certs()
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def session_of(connection: ApiConnection, *, connections: int) -> aiohttp.ClientSession:
    """To be called in the event loop. connections: open at once; a request beyond them waits for one."""
    connector = aiohttp.TCPConnector(
        limit=connections,
        ssl=connection.tls if connection.tls is not None else True,
        keepalive_timeout=60.0,  # bursts come minutes apart, a handshake costs more than a binding
        ttl_dns_cache=60,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        skip_auto_headers=("Accept-Encoding", "User-Agent"),
    )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes the event loop: uvloop's where it is installed, else that of asyncio."""
    base: Any
    try:
        import uvloop

        base = uvloop.Loop
    except ImportError:
        base = asyncio.SelectorEventLoop

    class Impatient(base):  # type: ignore[misc]
        async def create_connection(self, protocol_factory: Any, *where: Any, **options: Any) -> Any:
            if options.get("ssl"):
                options.setdefault("ssl_shutdown_timeout", GOODBYE_SECONDS)
            return await super().create_connection(protocol_factory, *where, **options)

    made: Callable[[], asyncio.AbstractEventLoop] = Impatient
    return made
