"""One of our services that runs elsewhere, asked over HTTP (docs/use/http-api.md): settings, connections, TLS, token,
errors.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import urllib3

from base.errors import ForecastError, InputError
from base.setting_group import SettingGroup
from kube.client.api_answer import read_answer

_CONNECTIONS: Final = 16


class ServiceUnavailable(ForecastError):
    """It does not answer, or not with what was asked."""


class ServiceRefused(ServiceUnavailable):
    """It answers that the request cannot be served as it is: a status of 400 to 499, with its own words."""


class NothingThere(ServiceRefused):
    """It answers 404: it has no such path, or no such object."""


def refusal(status: int) -> type[ServiceUnavailable]:
    """Return the error for an answer with any status but 200."""
    if status == 404:
        return NothingThere
    return ServiceRefused if 400 <= status < 500 else ServiceUnavailable


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """Where it is and how to speak to it.

    url        : for instance https://scorer.forecast-scheduler:8080
    token_file : file with a bearer token, read again for every request; None = none is asked for
    ca         : PEM file its certificate is checked against; None = the system's
    client_cert, client_key : PEM files to show where it asks for a certificate; the key may be in the certificate's
    seconds    : an answer must come within
    """

    url: str
    token_file: Path | None = None
    ca: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    seconds: float = 0.2


class _ErrorBody(msgspec.Struct):
    error: str = ""
    message: str = ""


class RemoteService:
    """Connections are kept open; nothing is sent twice. name: of the service, in errors."""

    def __init__(self, remote: RemoteAddress, name: str) -> None:
        """Raises InputError: a URL or file that cannot be used."""
        self._remote, self._name, self.address = remote, name, remote.url
        if not _is_url(remote.url):
            raise InputError(f"{name} {remote.url!r} is not a URL: write for instance http://{name}:8080")
        if urllib3.util.parse_url(remote.url).auth is not None:
            raise InputError(
                f"the URL of the {name} holds a user name or password, which would be printed: take them out and name "
                "a token file"
            )
        secured = remote.url.lower().startswith("https://")
        if not secured and any((remote.ca, remote.client_cert, remote.client_key)):
            raise InputError(
                f"the {name} {remote.url} is asked without TLS, and TLS files are named: write https://..."
            )
        if remote.client_key is not None and remote.client_cert is None:
            raise InputError(f"client_key is set for the {name} {remote.url} without client_cert: name both")
        try:
            self._headers()
        except (OSError, ValueError) as error:
            raise InputError(
                f"the token file for the {name} {remote.url} cannot be used: {_one_line(error)}"
            ) from error
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS,
            block=False,
            retries=False,
            timeout=urllib3.Timeout(total=remote.seconds),
            ssl_context=_tls(remote, name) if secured else None,
        )

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return the body of an answer 200. Raises ServiceUnavailable."""
        url, name = self._remote.url.rstrip("/") + path, self._name
        try:
            response = self._pool.request(method, url, body=body, headers=self._headers(), preload_content=False)
            answer = read_answer(response, seconds=self._remote.seconds)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:  # ValueError: a token that is no header
            raise ServiceUnavailable(f"the {name} {self._remote.url} does not answer: {_one_line(error)}") from error
        if response.status != 200:
            raise refusal(response.status)(
                f"the {name} {self._remote.url} answered {response.status}: {error_words(answer)}"
            )
        return answer

    def close(self) -> None:
        self._pool.clear()

    def _headers(self) -> dict[str, str]:
        """Raises OSError, ValueError: the token cannot be read."""
        headers = {"Content-Type": "application/json"}
        if self._remote.token_file is not None:
            headers["Authorization"] = f"Bearer {self._remote.token_file.read_text(encoding='utf-8').strip()}"
        return headers


def _is_url(text: str) -> bool:
    try:
        url = urllib3.util.parse_url(text)
    except urllib3.exceptions.LocationParseError:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not any(map(str.isspace, text))


def _tls(remote: RemoteAddress, name: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=remote.ca)
        if remote.client_cert is not None:
            context.load_cert_chain(remote.client_cert, remote.client_key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"TLS files for the {name} {remote.url} cannot be used: {_one_line(error)}") from error
    return context


def error_words(body: bytes) -> str:
    """The sentence of an error of ours (serving/json_answers.py) or of the API server, else the beginning of the
    text.
    """
    try:
        said = msgspec.json.decode(body, type=_ErrorBody)
    except msgspec.DecodeError:
        return _one_line(body.decode("utf-8", "replace")) or "nothing"
    return _one_line(said.error or said.message)


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]


class RemoteServiceOptions(SettingGroup):
    """Where a service of ours runs, and how to speak to it."""

    url: str | None = None
    """For instance https://scorer.forecast-scheduler:8080. None: it is not asked."""

    token_file: Path | None = None
    """File with the bearer token it asks for."""

    ca: Path | None = None
    """PEM file its certificate is checked against. None: the system's."""

    client_cert: Path | None = None
    """PEM file with the certificate to show it."""

    client_key: Path | None = None
    """PEM file with its key."""

    def address(self, seconds: float) -> RemoteAddress | None:
        """Return where to ask, None = nowhere. seconds: within which an answer must come."""
        if self.url is None:
            return None
        return RemoteAddress(self.url, self.token_file, self.ca, self.client_cert, self.client_key, seconds)
