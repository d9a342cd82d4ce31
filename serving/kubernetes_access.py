"""Whether the API server would let the bearer of a token send a request here: reviews, remembered and limited.

A review costs the API server a call, so no client may cause many:

- what is allowed is remembered for a minute, what is not for five seconds, a bounded number of each: a flood of made-up
  tokens pushes out other made-up tokens;
- the same question that is being asked already is waited for, not asked again;
- a few reviews are under way at once; few of one address may wait, and few of all together. Further ones get 503 at
  the cost of a look into a table;
- tokens that were let in within ten minutes wait and are reviewed in places of their own: a flood of others does not
  keep them from being reviewed again. A new client, or a renewed token, waits with the others.

No client gets in on a guess: while the API server is away, remembered answers count until they expire, then none does.
OUTAGE_PATHS are the exception: a client that got in there stays allowed for an hour of reviews that fail. Otherwise
Prometheus would lose us just when our metrics say that the API server is away. A review that says no ends it at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Coroutine, Hashable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final, Generic, TypeVar, cast

import anyio
import anyio.to_thread

from base.errors import InputError
from serving.quiet_log import Quiet, QuietLog
from serving.token_reviews import (
    ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    Ask,
    ReviewFailed,
    User,
    access_review,
    is_allowed,
    token_review,
    user_of,
)

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

OUTAGE_PATHS: Final = frozenset({("get", "/metrics")})
"""(verb, path) that allowed clients may go on requesting while reviews fail: they cost little and write nothing."""

_QUIET_SECONDS = 60.0
_LONGEST_TOKEN = 16_384
"""Bytes. Tokens of service accounts have about 1,000; those of identity providers with many groups some thousands."""
_LONGEST_PATH = 1024
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TimedCache(Generic[Key, Value]):
    """For one thread. A value counts for `seconds` from when it was put, however often it is asked for."""

    def __init__(self, *, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._held: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Key) -> Value | None:
        """None = not known, or not any more."""
        found = self._held.get(key)
        if found is None:
            return None
        if self._clock() >= found[0]:
            del self._held[key]
            return None
        self._held.move_to_end(key)
        return found[1]

    def put(self, key: Key, value: Value) -> None:
        """Remember it; the one that was used least recently makes room."""
        self._held[key] = (self._clock() + self._seconds, value)
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)

    def forget(self, key: Key) -> None:
        """As if it had never been put."""
        self._held.pop(key, None)


class AccessVerdict(Enum):
    """nobody: the token belongs to no user; unknown: the API server cannot be asked now; busy: too many wait for it."""

    ALLOWED = "allowed"
    NOBODY = "nobody"
    FORBIDDEN = "forbidden"
    UNKNOWN = "unknown"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class AccessLimits:
    """How long answers count, and how many questions there may be.

    allowed_seconds : time after its last review for which a withdrawn token or right still counts
    refused_seconds : time after which a new right counts
    most            : answers remembered, of each kind
    at_once         : reviews under way
    waiting         : requests that wait for a review; waiting_of_one: those from one address
    familiar_seconds: time after a review let it in for which a token is familiar; familiar ones have as many waiting
                      places of their own, and familiar_at_once reviews under way besides
    outage_seconds  : time for which a token that a review let in to one of OUTAGE_PATHS counts there while reviews
                      fail, and is as familiar there
    """

    allowed_seconds: float = 60.0
    refused_seconds: float = 5.0
    most: int = 1000
    at_once: int = 8
    waiting: int = 128
    waiting_of_one: int = 16
    familiar_seconds: float = 600.0
    familiar_at_once: int = 4
    outage_seconds: float = 3600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise InputError(f"{field.name} is {getattr(self, field.name)}: it must be above 0")

    @property
    def reviews(self) -> int:
        """Under way at once, all together."""
        return self.at_once + self.familiar_at_once


class KubernetesAccess:
    """For one event loop. audiences: tokens must be meant for one of them; none = for the API server itself."""

    def __init__(
        self,
        ask: Ask,
        audiences: Collection[str] = (),
        limits: AccessLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._audiences, self._limits = ask, tuple(audiences), limits or AccessLimits()
        self._clock = clock
        limits, allowed, refused = self._limits, self._limits.allowed_seconds, self._limits.refused_seconds
        self._users: TimedCache[bytes, User] = TimedCache(seconds=allowed, most=limits.most, clock=clock)
        self._nobody: TimedCache[bytes, bool] = TimedCache(seconds=refused, most=limits.most, clock=clock)
        self._may: TimedCache[tuple[User, str, str], bool] = TimedCache(seconds=allowed, most=limits.most, clock=clock)
        self._may_not: TimedCache[tuple[User, str, str], bool] = TimedCache(
            seconds=refused, most=limits.most, clock=clock
        )
        self._let_in: TimedCache[bytes, bool] = TimedCache(
            seconds=limits.familiar_seconds, most=limits.most, clock=clock
        )
        self._through_outages: TimedCache[tuple[bytes, str, str], bool] = TimedCache(
            seconds=limits.outage_seconds, most=limits.most, clock=clock
        )
        # Tokens are not kept, nor anything by which a token could be recognized elsewhere.
        self._salt = secrets.token_bytes(32)
        self._queues = {False: _Queue(limits.at_once), True: _Queue(limits.familiar_at_once)}
        self._log = QuietLog(logger, Quiet(_QUIET_SECONDS, clock))

    async def verdict(self, token: bytes, verb: str, path: str, address: str = "") -> AccessVerdict:
        """Return whether the bearer of this token may send the request. verb: HTTP method in lower case; address: where
        the request is from.
        """
        if not token or len(token) > _LONGEST_TOKEN or not token.isascii():
            return AccessVerdict.NOBODY
        if len(path) > _LONGEST_PATH:
            return AccessVerdict.FORBIDDEN
        key = self._key(token)
        known = self._remembered(key, verb, path)
        if known is not None:
            return known
        is_familiar = bool(self._let_in.get(key) or self._through_outages.get((key, verb, path)))
        limits, queue = self._limits, self._queues[is_familiar]
        if queue.waiting.total() >= limits.waiting or queue.waiting[address] >= limits.waiting_of_one:
            return AccessVerdict.BUSY
        queue.waiting[address] += 1
        try:
            verdict = await self._reviewed(queue, key, token, verb, path)
            self._note(key, verb, path, verdict)
            return verdict
        except ReviewFailed as error:
            self._say(error)
            return AccessVerdict.ALLOWED if self._through_outages.get((key, verb, path)) else AccessVerdict.UNKNOWN
        finally:
            queue.waiting[address] -= 1
            if not queue.waiting[address]:
                del queue.waiting[address]

    def _note(self, key: bytes, verb: str, path: str, verdict: AccessVerdict) -> None:
        """Remember what reviews said last, which counts while they fail. A token of no user is so on every path."""
        for known in OUTAGE_PATHS if verdict is AccessVerdict.NOBODY else OUTAGE_PATHS & {(verb, path)}:
            if verdict is AccessVerdict.ALLOWED:
                self._through_outages.put((key, *known), True)
            else:
                self._through_outages.forget((key, *known))

    def _key(self, token: bytes) -> bytes:
        return hmac.digest(self._salt, token, hashlib.sha256)

    def _remembered(self, key: bytes, verb: str, path: str) -> AccessVerdict | None:
        if self._nobody.get(key):
            return AccessVerdict.NOBODY
        user = self._users.get(key)
        if user is None:
            return None
        if self._may.get((user, verb, path)):
            return AccessVerdict.ALLOWED
        return AccessVerdict.FORBIDDEN if self._may_not.get((user, verb, path)) else None

    async def _reviewed(self, queue: _Queue, key: bytes, token: bytes, verb: str, path: str) -> AccessVerdict:
        user = self._users.get(key)
        if user is None:
            user = await self._once(queue, key, lambda: self._user(queue, key, token.decode()))
        if user is None:
            return AccessVerdict.NOBODY
        asked = (user, verb, path)
        if not self._may.get(asked) and not await self._once(queue, asked, lambda: self._allowed(queue, asked)):
            return AccessVerdict.FORBIDDEN
        self._let_in.put(key, True)
        return AccessVerdict.ALLOWED

    async def _user(self, queue: _Queue, key: bytes, token: str) -> User | None:
        found = await self._posted(queue, TOKEN_REVIEWS, token_review(token, self._audiences))
        user = user_of(*found, self._audiences)
        if user is None:
            self._nobody.put(key, True)
        else:
            self._users.put(key, user)
        return user

    async def _allowed(self, queue: _Queue, asked: tuple[User, str, str]) -> bool:
        allowed = is_allowed(*await self._posted(queue, ACCESS_REVIEWS, access_review(*asked)))
        (self._may if allowed else self._may_not).put(asked, True)
        return allowed

    async def _once(self, queue: _Queue, key: object, review: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
        """Return what the review finds; joins one that is under way. A client that hangs up does not end it."""
        task = queue.under_way.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(review())
            queue.under_way[key] = task
            task.add_done_callback(lambda done: queue.done(key, done))
        return cast(Found, await asyncio.shield(task))

    async def _posted(self, queue: _Queue, path: str, body: bytes) -> tuple[int, bytes]:
        return await anyio.to_thread.run_sync(self._ask, path, body, limiter=queue.limiter)

    def _say(self, error: ReviewFailed) -> None:
        self._log.log(logging.WARNING, "clients whose token is not remembered are refused: %s", error)


class _Queue:
    """Requests that wait for a review, by address, and a bounded number of reviews under way."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._limiter: anyio.CapacityLimiter | None = None
        self.waiting: Counter[str] = Counter()
        self.under_way: dict[object, asyncio.Task[Any]] = {}

    @property
    def limiter(self) -> anyio.CapacityLimiter:
        """Belongs to the event loop, which does not run yet when this is made."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._at_once)
        return self._limiter

    def done(self, key: object, task: asyncio.Task[Any]) -> None:
        """The review has ended."""
        del self.under_way[key]
        if not task.cancelled():
            task.exception()  # each waiting request has it; there may be none
