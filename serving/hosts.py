"""Under which names a service is asked, and by pages of which origin. Both are about browsers.

A page from elsewhere can make a browser send requests to any address that its user reaches, this machine's own too.
Origin names that page. Host names the server that the page believes to ask: by DNS rebinding, a name of the
attacker's leads to 127.0.0.1, and Origin and Host are the same.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from serving.json_answers import ErrorAnswer, error_response
from serving.security import OPEN_PATHS

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Hosts:
    """names: host names of the settings; loopback: the service listens on a loopback address."""

    names: frozenset[str] = frozenset()
    loopback: bool = False

    def refusal(self, hosts: list[str], origins: list[str]) -> str:
        """Why values of Host and Origin are refused, with the way out; '' = they are not."""
        for host in hosts:
            if not self._is_ours(host):
                return (
                    f"the Host {host[:_SHOWN]!r} is none of this service: ask for localhost or an IP address, or name "
                    "it in allowed_hosts"
                )
        for origin in origins:
            if not self._is_of_page(origin, hosts):
                return (
                    f"the Origin {origin[:_SHOWN]!r} is not the Host that is asked: pages of other origins may not "
                    "ask; behind a proxy, name its host in allowed_hosts"
                )
        return ""

    def _is_ours(self, host: str) -> bool:
        if not self.loopback and not self.names:
            return True
        name = _name_of(host)
        if name in self.names or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # An address as Host cannot be rebound: probes ask a pod's.
        return address.is_loopback or not self.loopback

    def _is_of_page(self, origin: str, hosts: list[str]) -> bool:
        scheme, separator, netloc = origin.lower().partition("://")
        if not separator or scheme not in _DEFAULT_PORTS:
            return False
        default = _DEFAULT_PORTS[scheme]
        same = {host.strip().lower().removesuffix(default) for host in hosts} == {netloc.removesuffix(default)}
        return same or _name_of(netloc) in self.names


ANY_HOST = Hosts()


class HostCheck:
    """ASGI: answers 403 where Host or Origin is foreign. The open paths hold no data and change nothing."""

    def __init__(self, app: ASGIApp, hosts: Hosts, answer: ErrorAnswer = error_response) -> None:
        self._app, self._hosts, self._answer = app, hosts, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            found: dict[bytes, list[str]] = {b"host": [], b"origin": []}
            for name, value in scope["headers"]:
                if name in found:
                    found[name].append(value.decode("latin-1"))
            message = self._hosts.refusal(found[b"host"], found[b"origin"])
            if message:
                await self._answer(403, message, {"Connection": "close"})(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _name_of(host: str) -> str:
    """The host without its port, in lower case; '' = it is none."""
    try:
        name = urlsplit(f"//{host.strip()}").hostname or ""
    except ValueError:
        return ""
    return name.removesuffix(".")
