"""A list and a watch without I/O and without a clock: what to ask the API server for, and what to do after which
answer.

        ┌────── watch's events are too old (410), contradictory or unreadable ─────┐
        v                                                                           │
      LIST ── complete ──> WATCH ── stream ended, broken, refused for now ──> WATCH ┘
        └── failed ──> LIST      from the last resource version: nothing is listed again

client-go's reflector does the same: tools/cache/reflector.go in k8s.io/client-go.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from base.backoff import Backoff
from kube.decoding.watched_kinds import Watched

# Plain JSON second: both have metadata in the same place.
_PARTIAL = "application/json;as={};g=meta.k8s.io;v=v1,application/json"


class Action(Enum):
    """What to ask the server for."""

    LIST = "list"
    WATCH = "watch"


class WatchResult(Enum):
    """How a list or a watch went."""

    LISTED = "listed"  # a complete list has been applied
    ENDED = "ended"  # the stream ended in good order, as every watch does after its timeout
    FAILED = "failed"  # no connection, broken stream, server error, no permission: the same again, later
    EXPIRED = "expired"  # the resource version or continue token is older than what the server remembers
    UNUSABLE = "unusable"  # the server rejects the request as such, or what came cannot be applied: list again


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A result. progressed: at least one event or bookmark was applied; retry_after: seconds the server asks for."""

    result: WatchResult
    progressed: bool = False
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class WatchStep:
    """What to do next.

    wait_seconds : before it
    failures     : attempts since something last went well
    in_pages     : of a list; False = everything in one answer
    """

    action: Action = Action.LIST
    wait_seconds: float = 0.0
    failures: int = 0
    in_pages: bool = True


def next_step(done: WatchStep, outcome: StepOutcome, backoff: Backoff, rng: random.Random) -> WatchStep:
    """The step after `done` went like this."""
    if outcome.result is WatchResult.LISTED:
        # Failures are kept until a watch brings something: list, 410, list, 410, ... must slow down.
        return WatchStep(Action.WATCH, failures=done.failures)
    if outcome.result is WatchResult.ENDED and outcome.progressed:
        return WatchStep(Action.WATCH)
    failures = 1 if outcome.progressed else done.failures + 1
    wait = max(backoff.seconds(failures, rng), outcome.retry_after)
    if outcome.result in (WatchResult.EXPIRED, WatchResult.UNUSABLE):
        # A list that takes longer than the server remembers its start would never end in pages (as client-go's
        # tools/pager/pager.go: FullListIfExpired).
        expired_list = outcome.result is WatchResult.EXPIRED and done.action is Action.LIST
        return WatchStep(Action.LIST, wait, failures, in_pages=done.in_pages and not expired_list)
    return WatchStep(done.action, wait, failures, done.in_pages)


def result_of_status(status: int) -> WatchResult | None:
    """What an HTTP status means; None = a body follows that can be used."""
    if status == 200:
        return None
    if status == 410:
        return WatchResult.EXPIRED
    # Credentials are renewed and rights granted while we wait; 408, 429 and 5xx pass by themselves.
    if status in (401, 403, 408, 429) or status >= 500:
        return WatchResult.FAILED
    return WatchResult.UNUSABLE


@dataclass(frozen=True, slots=True)
class Request:
    """A GET: path below the server's address, query, and the Accept header."""

    path: str
    accept: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)


def list_request(watched: Watched[Any], *, limit: int, continue_token: str = "") -> Request:
    """One page of a consistent list; limit 0 = everything in one answer."""
    query = {**watched.query, **({"limit": str(limit)} if limit else {})}
    if continue_token:
        query["continue"] = continue_token
    return Request(watched.path, _accept(watched, "PartialObjectMetadataList"), query)


def watch_request(watched: Watched[Any], resource_version: str, *, timeout_seconds: int) -> Request:
    """All changes after a resource version, with bookmarks; the server ends the stream after `timeout_seconds`."""
    query = {
        **watched.query,
        "watch": "true",
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_seconds),
    }
    return Request(watched.path, _accept(watched, "PartialObjectMetadata"), query)


def _accept(watched: Watched[Any], partial: str) -> str:
    return _PARTIAL.format(partial) if watched.metadata_only else "application/json"
