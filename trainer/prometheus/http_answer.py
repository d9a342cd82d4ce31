"""What an HTTP answer of Prometheus means, and what can go wrong with one request. Pure: status, type and body in,
document or error out.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import msgspec

from base.errors import ForecastError, InputError
from base.redaction import redacted
from trainer.prometheus.queries import Queries

# What can go wrong with one request, before the user sees it.
#
# Unreachable       patience ended, the next question would fare no better: ends the run
# NoPrometheusApi   another program, or another path: ends the run
# ImpossibleAnswer  no Prometheus says that, so nothing else that is said there counts: ends the run
# Transient         may be better in a moment: retried until the patience ends, then an InputError
# TooManySamples    the server refuses the size: the reader asks for less at a time

MOST_SERIES: Final = 500_000

MOST_SAMPLES: Final = 4_500_000
"""Of one answer. Two million samples are asked for at a time, and a cluster of 100,000 pods has as many series."""

_PIECE_BYTES: Final = 2**20

_LARGEST_SERIES: Final = 4 * 2**20
"""Bytes. A server gives at most some ten thousand points of a series, of 40 bytes each."""

_SHOWN = 200

# Evaluation errors that do not depend on the size of the question (promql/engine.go).
_NOT_SIZE = re.compile(r"duplicate|many-to-many|multiple matches|same labelset|invalid|unknown")

_FOREIGN: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_NAMES = frozenset(field.name for field in fields(Queries))


class PrometheusUnreachable(InputError):
    """The server has not answered for as long as we are willing to wait."""


class NoPrometheusApi(InputError):
    """There is no such path on the server."""


class CredentialsRefused(InputError):
    """The server, or a gateway before it, wants other credentials, or some at all."""


class ImpossibleAnswer(InputError):
    """The answer holds what no Prometheus gives."""


class Transient(ForecastError):
    """The request failed in a way that passes; `way_out` completes the sentence once patience has ended."""

    def __init__(self, found: str, way_out: str) -> None:
        self.found, self.way_out = found, way_out
        super().__init__(f"{found}: {way_out}")


class TooManySamples(ForecastError):
    """The query is too large for the server; `found` is what it said."""

    def __init__(self, name: str, found: str) -> None:
        self.name, self.found = name, found
        super().__init__(f"query {name} is too large for the server ({found})")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A successful answer. pieces: its series, some at a time, decoded when they are asked for."""

    pieces: Iterator[list[Any]]
    warnings: Sequence[str] = ()


class _Data(msgspec.Struct, rename="camel"):
    result: msgspec.Raw
    result_type: str


class _Document(msgspec.Struct):
    status: str
    data: _Data
    warnings: msgspec.Raw = msgspec.Raw()


class _Series(msgspec.Struct, gc=False):
    metric: msgspec.Raw = msgspec.Raw()
    values: msgspec.Raw = msgspec.Raw()
    value: msgspec.Raw = msgspec.Raw()


def interpret(
    status: int, content_type: str, body: bytes | bytearray, *, name: str, query: str, url: str
) -> QueryResult:
    """The result of a successful answer. Raises Transient, TooManySamples or InputError; `pieces` these and
    ImpossibleAnswer.

    name  : the query's name in the settings
    """
    kind = content_type.partition(";")[0].strip() or "no content type"
    said = "" if status == 200 else redacted(_message(body))
    if status in (401, 403):
        raise CredentialsRefused(
            f"{url} refuses the credentials (HTTP {status}{said and ': ' + said}): check prometheus.bearer_token_file, "
            "user name and password or prometheus.cloud, and what they may read"
        )
    if status in (404, 405):
        raise NoPrometheusApi(
            f"{url} has no Prometheus API (HTTP {status}): is the URL right? It is what comes before /api/v1, for "
            "instance http://prometheus:9090, or http://mimir/prometheus"
        )
    if status == 400:
        raise InputError(
            f"the server does not accept query {name} ({said or 'HTTP 400'}): {_mend(name)}; it is {query}"
        )
    if status in (413, 414, 422):
        if status == 422 and _NOT_SIZE.search(said):
            raise InputError(f"the server cannot evaluate query {name} ({said}): {_mend(name)}; it is {query}")
        raise TooManySamples(name, said or f"HTTP {status}")
    if status == 503 and "timed out" in said:
        raise TooManySamples(name, said)
    if status == 429 or status >= 500:
        raise Transient(
            f"{url} answers HTTP {status}{said and ' (' + said + ')'}", "look at the server's log, or try again later"
        )
    if not 200 <= status < 300:
        raise InputError(f"{url} answers HTTP {status}{said and ' (' + said + ')'}: is the URL right?")
    found = "JSON that is cut off or foreign" if "json" in kind else kind
    foreign = Transient(f"{url} answers with {found}, not a Prometheus API", "is the URL right?")
    _check_size(body, name)
    try:
        document = msgspec.json.decode(body, type=_Document)
    except _FOREIGN as error:
        raise foreign from error
    result_type, result = document.data.result_type, memoryview(document.data.result)
    if document.status != "success":
        raise foreign
    if result_type not in ("matrix", "vector"):
        raise InputError(
            f"query {name} returns a {result_type}, it must return an instant vector with labels: {_mend(name)}; "
            f"it is {query}"
        )
    if bytes(result[:1]) != b"[":
        raise Transient(f"{url} answers with a foreign result, not a Prometheus API", "is the URL right?")
    return QueryResult(_pieces(result, foreign), _texts(memoryview(document.warnings)))


def _check_size(body: bytes | bytearray, name: str) -> None:
    """Raise TooManySamples for an answer that would take much more memory than its bytes; nothing is decoded yet."""
    if len(body) <= _PIECE_BYTES:
        return
    # A series is two objects, a sample a list.
    for mark, each, most, what in ((b"{", 2, MOST_SERIES, "series"), (b"[", 1, MOST_SAMPLES, "samples")):
        if body.count(mark) > each * most:
            raise TooManySamples(name, f"its answer has more than {most:,} {what}, the most that is read of one")


def _pieces(result: memoryview, foreign: Transient) -> Iterator[list[Any]]:
    """The series of a result, those of some _PIECE_BYTES at a time.

    The objects that hold a sample take ten times its text: of a whole answer, they would take a gigabyte.
    """
    try:
        if len(result) <= _PIECE_BYTES:
            yield _decoded(result)
            return
        series = msgspec.json.decode(result, type=list[_Series])
    except msgspec.ValidationError as error:
        raise ImpossibleAnswer(f"what is no list of series ({error})") from error
    except _FOREIGN as error:
        raise foreign from error
    texts: list[bytes] = []
    size = 0
    for one in series:
        text = b",".join(
            b'"%s":%s' % (key.encode(), bytes(value))
            for key in ("metric", "values", "value")
            if len(value := memoryview(getattr(one, key)))
        )
        if len(text) > _LARGEST_SERIES:
            raise ImpossibleAnswer(f"a series of {len(text):,} bytes, allowed are {_LARGEST_SERIES:,}")
        texts.append(text)
        size += len(text)
        if size >= _PIECE_BYTES:
            yield _decoded_series(texts, foreign)
            texts, size = [], 0
    yield _decoded_series(texts, foreign)


def _decoded_series(texts: Sequence[bytes], foreign: Transient) -> list[Any]:
    try:
        return list(_decoded(b"[{%s}]" % b"},{".join(texts) if texts else b"[]"))
    except _FOREIGN as error:
        raise foreign from error


def _texts(warnings: memoryview) -> list[str]:
    """What a server warns of; none of a list that cannot be read."""
    try:
        return msgspec.json.decode(warnings, type=list[str]) if 0 < len(warnings) <= _PIECE_BYTES else []
    except _FOREIGN:
        return []


def _decoded(text: bytes | memoryview) -> Any:
    """Decode JSON without the garbage collector looking at each small list: a million samples take 0.2 s, not 0.7 s.

    msgspec keeps the interpreter lock, so no other thread runs meanwhile; the call that found the collector on turns it
    on again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return msgspec.json.decode(text)
    finally:
        if enabled:
            gc.enable()


def _mend(name: str) -> str:
    if name not in _NAMES:
        return "is it a Prometheus API?"
    return f"correct the setting prometheus.queries.{name}"


class _Said(msgspec.Struct):
    error: str | None = None
    message: str | None = None  # of gateways, such as the one of Amazon's service


def _message(body: bytes | bytearray) -> str:
    """What the server says about an error, one line."""
    try:
        said = msgspec.json.decode(body, type=_Said)
        text = said.error if said.error is not None else said.message
    except _FOREIGN:
        text = None
    if text is None:
        text = re.sub(r"<[^>]*>", " ", body[:2_000].decode("utf-8", "replace"))
    return " ".join(text.split())[:_SHOWN]
