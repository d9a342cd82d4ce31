"""The one place that talks to Prometheus: credentials, TLS, retries with backoff. What answers mean is in
http_answer.py.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.auth import AuthBase
from requests.exceptions import RequestException, SSLError
from urllib3.exceptions import HTTPError

from base.announced_wait import announced_wait
from base.backoff import Backoff
from base.bounded_reading import ROOM, AnswerTooLarge, AnswerTooSlow, read_whole
from base.errors import InputError
from forecast.resources import RESOURCES
from trainer.prometheus.cloud_credentials import cloud_credentials
from trainer.prometheus.http_answer import ImpossibleAnswer, PrometheusUnreachable, TooManySamples, Transient, interpret
from trainer.prometheus.label_selectors import UnreadableQuery, with_labels
from trainer.prometheus.matrix import Matrix, Series, joined, matrix_of, vector_of
from trainer.prometheus.prometheus_settings import Cloud, ConnectionOptions, SourceOptions

logger = logging.getLogger(__name__)

# Thanos and VictoriaMetrics would otherwise answer without the stores they cannot reach, and the gap would stay in the
# history. Servers that do not know the parameters pass over them. Google's API refuses unknown ones, and managed
# servers answer whole anyway: with `cloud` they are left out.
_WHOLE_ANSWERS = {"partial_response": "false", "deny_partial_response": "1"}
# Our own queries take the larger of what two replicas have. Thanos, which puts the samples of both together, may begin
# with one of each. Then the rate of a few scrapes is too low: by up to 40 % where there is one every two minutes. A
# query of the settings was written for what the server answers by default.
_EACH_REPLICA = {"dedup": "false"}
_USAGE = frozenset(f"{kind}_{resource.name}" for kind in ("pod", "node") for resource in RESOURCES)
_LONGEST_URL = 4_000  # characters of a query beyond which it travels in the body of a POST
_LARGEST_ANSWER = 2**27  # bytes; two million samples, the most asked for at a time, take some 60 to 90 MB
_REPORT_SECONDS = 10.0


class PrometheusConnection:
    """Instant and range queries that return checked results; threads may share it.

    Every selector of a query gets the labels of `options.cluster`.
    """

    def __init__(
        self,
        url: str,
        options: ConnectionOptions | None = None,
        *,
        transport: BaseAdapter | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """url: what comes before /api/v1; transport: sends the requests and shows who asks; None = by the options."""
        options = options or ConnectionOptions()
        if not url.startswith(("http://", "https://")):
            raise InputError("the URL of Prometheus has no scheme: write for instance http://prometheus:9090")
        if "@" in urlsplit(url).netloc:
            raise InputError(
                "the URL of Prometheus holds a user name or password, which would be printed: take them out and set "
                "prometheus.username and prometheus.password_file"
            )
        if bool(options.username) != (options.password_file is not None):
            raise InputError("prometheus.username and prometheus.password_file belong together: set both or neither")
        if options.cloud is not Cloud.OFF and (options.username or options.bearer_token_file is not None):
            raise InputError(
                f"prometheus.cloud is {options.cloud.value}, which shows an identity of its own: take out "
                "prometheus.username, password_file and bearer_token_file, or set cloud: off"
            )
        for header, value in options.headers.items():
            if "\n" in value or "\r" in value:
                raise InputError(f"prometheus.headers: the value of {header} has a line break: write it in one line")
        self.url: Final = url
        self.options, self._sleep, self._reached = options, sleep, threading.Event()
        self._reported = -math.inf  # monotonic seconds of the last line about a retry
        self._whole = _WHOLE_ANSWERS if options.cloud is Cloud.OFF else {}
        self._own = _USAGE - set(options.queries if isinstance(options, SourceOptions) else ())
        session = requests.Session()
        session.hooks["response"].append(_end_redirect)
        # Plain: 172,800 samples took the server 0.34 s compressed, and 0.05 s as 6 MB.
        session.headers["Accept-Encoding"] = "identity"
        session.headers.update(options.headers)
        session.auth = _Credentials(options) if options.cloud is Cloud.OFF else cloud_credentials(options)
        if options.ca_file is not None:
            session.verify = str(_readable(options.ca_file, "ca_file"))
        if options.insecure:
            session.verify = False
            # Once per request, and it was asked for.
            warnings.filterwarnings("ignore", message="Unverified HTTPS request")
        if options.cert_file is not None:
            cert = str(_readable(options.cert_file, "cert_file"))
            key = options.key_file and str(_readable(options.key_file, "key_file"))
            session.cert = (cert, key) if key else cert
        if transport is not None:
            session.mount(url, transport)
        self._session = session

    def instant(self, name: str, query: str, at: datetime | None = None, *, everywhere: bool = False) -> Matrix:
        """Result of an instant query; at None = now. name: of the query in the settings.

        everywhere : of all clusters that the server holds, whatever `options.cluster` says
        """
        if not everywhere:
            query = self._narrowed(name, query)
        when = {} if at is None else {"time": at.timestamp()}
        return self._ask(name, query, "query", when, vector_of)

    def range(self, name: str, query: str, start: datetime, end: datetime, step_seconds: int) -> Matrix:
        """Result of a range query, both ends included; ticks count from `start`."""
        query = self._narrowed(name, query)
        begin, finish = round(start.timestamp()), round(end.timestamp())
        span = {"start": begin, "end": finish, "step": str(step_seconds)}
        return self._ask(
            name,
            query,
            "query_range",
            span,
            lambda found: matrix_of(found, start=begin, end=finish, step_seconds=step_seconds),
        )

    def close(self) -> None:
        self._session.close()

    def _params(self, name: str, query: str) -> dict[str, Any]:
        """Parameters for servers that put the answers of several stores together."""
        is_rate = name in self._own and "rate(" in query
        return {**self._whole, **(_EACH_REPLICA if self._whole and is_rate else {})}

    def _narrowed(self, name: str, query: str) -> str:
        try:
            return with_labels(query, self.options.cluster)
        except UnreadableQuery as error:
            raise InputError(
                f"the labels of prometheus.cluster cannot be put into query {name}: {error}; correct "
                f"prometheus.queries.{name}"
            ) from error

    def _ask(
        self, name: str, query: str, kind: str, given: Mapping[str, Any], decode: Callable[[list[Series]], Matrix]
    ) -> Matrix:
        """Ask until there is an answer, or patience ends.

        kind  : of query: the last part of the URL
        given : its parameters
        """
        params = {"query": query, **given, **self._params(name, query)}
        patience = self.options.patience
        if not self._reached.is_set():
            patience = min(patience, self.options.first_patience)
        pause, rng = Backoff(first=0.5, longest=min(15, patience / 4)), random.Random()
        started = time.monotonic()
        try:
            for attempt in count(1):
                try:
                    result = self._answer(name, kind, params, decode)
                    break
                except Transient as error:
                    left = started + patience - time.monotonic()
                    if left <= 0:
                        tried = _tried(attempt, time.monotonic() - started)
                        raise PrometheusUnreachable(f"{error.found}{tried}: {error.way_out}") from error
                    self._report(name, attempt, error, waited=patience - left, left=left)
                    self._sleep(pause.seconds(attempt, rng))
        except ImpossibleAnswer as error:
            self._reached.set()
            raise ImpossibleAnswer(
                f"{self.url} answers query {name} with {error}: no Prometheus says that, look at what is behind the "
                f"URL; the query is {' '.join(query.split())}"
            ) from error
        self._reached.set()
        return result

    def _report(self, name: str, attempt: int, error: Transient, *, waited: float, left: float) -> None:
        """Log a line every ten seconds, whatever the number of threads, so that a run that waits shows why.

        waited, left : seconds since the first attempt, and until patience ends
        """
        now = time.monotonic()
        if waited < _REPORT_SECONDS or now - self._reported < _REPORT_SECONDS:
            return
        self._reported = now
        logger.warning(
            "a query is repeated",
            extra={"query": name, "attempt": attempt, "error": error.found, "seconds_left": round(left)},
        )

    def _answer(self, name: str, kind: str, params: dict[str, Any], decode: Callable[[list[Series]], Matrix]) -> Matrix:
        """Ask once. Raises Transient, TooManySamples, ImpossibleAnswer or InputError."""
        url, session, timeout = f"{self.url.rstrip('/')}/api/v1/{kind}", self._session, self.options.timeout
        if not self._reached.is_set():
            timeout = min(timeout, self.options.first_patience)
        # A session's own `verify` would give way to $REQUESTS_CA_BUNDLE.
        how: dict[str, Any] = {"timeout": timeout, "verify": session.verify, "stream": True}
        try:
            with announced_wait(f"{self.url} to query {name}", timeout):
                if len(params["query"]) > _LONGEST_URL:
                    asked = session.post(url, data=params, **how)
                else:
                    asked = session.get(url, params=params, **how)
            with asked as response, ROOM.reading() as hold:
                # read1 returns what has come: read would wait for a whole piece, however slowly it drips.
                body = read_whole(
                    lambda most: response.raw.read1(most, decode_content=True),
                    hold,
                    most=_LARGEST_ANSWER,
                    seconds=timeout,
                )
                content_type = response.headers.get("Content-Type", "")
                result = interpret(
                    response.status_code, content_type, body, name=name, query=params["query"], url=self.url
                )
                for warning in result.warnings:
                    logger.warning("the server warns", extra={"query": name, "warning": warning[:200]})
                return joined([decode(piece) for piece in result.pieces])
        except SSLError as error:
            if "EOF" in str(error):
                raise Transient(f"{self.url} broke off the TLS handshake", "is the server up?") from error
            raise InputError(
                f"{self.url}: no secure connection ({_reason(error)}): give prometheus.ca_file the authority that "
                "signed the server's certificate, or check cert_file and key_file"
            ) from error
        except AnswerTooLarge as error:
            raise TooManySamples(name, str(error)) from error
        except AnswerTooSlow as error:
            raise Transient(f"{self.url} {error}", "is the server overloaded?") from error
        except (RequestException, HTTPError) as error:
            raise Transient(
                f"{self.url} cannot be reached ({_reason(error)})", "is the URL right and the server up?"
            ) from error


class _Credentials(AuthBase):
    """Puts the bearer token or user name on a request. As an auth object, so that no netrc file overrides it."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        options = self._options
        if options.bearer_token_file is not None:
            token = _secret(options.bearer_token_file, "bearer_token_file")
            request.headers["Authorization"] = f"Bearer {token}"
        elif options.username:
            password = ""
            if options.password_file is not None:
                password = _secret(options.password_file, "password_file")
            return requests.auth.HTTPBasicAuth(options.username.encode(), password.encode())(request)
        return request


def _tried(attempts: int, seconds: float) -> str:
    """How often and how long a query was asked, for the end of a sentence; "" = once, and the error came at once."""
    if attempts == 1:
        return f" (asked once, for {seconds:.0f} s)" if seconds >= 1 else ""
    return f" (asked {attempts} times in {seconds:.0f} s)" if seconds >= 1 else f" (asked {attempts} times)"


def _end_redirect(response: requests.Response, *args: Any, **kwargs: Any) -> None:
    """Hang up on an answer that sends us elsewhere: requests would read all of it, however much that is."""
    if response.is_redirect:
        response.close()


def _readable(path: Path, setting: str) -> Path:
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(
            f"prometheus.{setting} {path} cannot be read ({error.strerror}): correct the setting"
        ) from error
    return path


def _secret(path: Path, setting: str) -> str:
    """The one line that a file of credentials holds."""
    try:
        secret = _readable(path, setting).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"prometheus.{setting} {path} is not text: write the secret in one line") from error
    if len(secret.splitlines()) > 1:
        raise InputError(f"prometheus.{setting} {path} has several lines: write the secret in one line")
    return secret


def _reason(error: BaseException) -> str:
    """The innermost cause in a few words: urllib3 wraps it several times."""
    cause: BaseException = error
    while isinstance(inner := (cause.__cause__ or (cause.args[0] if cause.args else None)), BaseException):
        cause = inner
    reason = getattr(cause, "reason", None)
    text = " ".join(str(reason if isinstance(reason, BaseException) else cause).split())
    return text.rpartition("object at 0x")[2].partition(">: ")[2][:160] or text[:160]
