"""What an HTTP answer of Prometheus means. Pure: status, type and body in, document or error out.

    200 with JSON      the result, if it is a matrix or a vector
    400                the query is wrong: InputError names it and repeats the server
    401, 403, 404      credentials, URL: InputError
    422                too many samples (TooManySamples), or a query that cannot be evaluated: InputError
    429, 5xx           passes: Transient; a query that timed out is too large
    anything else      not a Prometheus API; Transient, since proxies answer text while a server restarts

Formats: https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
"""

from __future__ import annotations

import gc
import re
from dataclasses import fields
from typing import Any

import orjson

from forecast.errors import InputError
from forecast.redaction import redacted
from trainer.prometheus.errors import TooManySamples, Transient
from trainer.prometheus.queries import Queries

_SHOWN = 200
_NAMES = frozenset(field.name for field in fields(Queries))
# Evaluation errors that do not depend on the size of the question (promql/engine.go).
_NOT_SIZE = re.compile(r"duplicate|many-to-many|multiple matches|same labelset|invalid|unknown")


def interpret(status: int, content_type: str, body: bytes, *, name: str, query: str, url: str) -> dict[str, Any]:
    """The document of a successful answer; raises Transient, TooManySamples or InputError.

    name  : the query's name in the settings
    """
    kind = content_type.partition(";")[0].strip() or "no content type"
    said = "" if status == 200 else redacted(_message(body))  # a good answer may be 50 MB: decoded once, below
    if status in (401, 403):
        raise InputError(
            f"{url} refuses the credentials (HTTP {status}{said and ': ' + said}): check prometheus.bearer_token_file, "
            "user name and password or prometheus.cloud, and what they may read"
        )
    if status in (404, 405):
        raise InputError(
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
    try:
        document = _decoded(body)
        result, result_type = document["data"]["result"], document["data"]["resultType"]
        if document["status"] != "success":
            raise KeyError(document["status"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        found = "JSON that is cut off or foreign" if "json" in kind else kind
        raise Transient(f"{url} answers with {found}, not a Prometheus API", "is the URL right?") from error
    if result_type not in ("matrix", "vector"):
        raise InputError(
            f"query {name} returns a {result_type}, it must return an instant vector with labels: {_mend(name)}; "
            f"it is {query}"
        )
    if not isinstance(result, list):
        raise Transient(f"{url} answers with a foreign result, not a Prometheus API", "is the URL right?")
    return dict(document)


def _decoded(body: bytes) -> Any:
    """Decode JSON without the garbage collector looking at each of a million small lists: 0.07 s instead of 0.35 s.

    orjson keeps the interpreter lock, so no other thread runs meanwhile; the call that found the collector on turns it
    on again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return orjson.loads(body)
    finally:
        if enabled:
            gc.enable()


def _mend(name: str) -> str:
    if name not in _NAMES:
        return "is it a Prometheus API?"
    return f"correct the setting prometheus.queries.{name}"


def _message(body: bytes) -> str:
    """What the server says about an error, one line."""
    try:
        document = orjson.loads(body)
        # "message": of gateways, such as the one of Amazon's service
        text = str(document["error"] if "error" in document else document["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = re.sub(r"<[^>]*>", " ", body[:2_000].decode("utf-8", "replace"))
    return " ".join(text.split())[:_SHOWN]
