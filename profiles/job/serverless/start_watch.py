"""Looks every second for pods that providers have not started, and takes them back.

    look  under the lock of the tables: providers whose backoff is over, pods to give up
    act   pods that a controller makes anew are taken back, some a second at most, and no more of a Job than that can
          afford (pod_takeback.py); others are only reported, once

A replica that does not lead looks, too: when it takes over it knows since when pods have been waiting. One that has
just been started counts from the moment at which it first saw them.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Final

from kube.objects.objects import PodInfo
from kube.session.session_calls import Session, begin
from kube.write_pacing import TokenBucket
from profiles.job.serverless.pod_takeback import Affording, TakebackOutcome, take_back, why_of
from profiles.job.serverless.provider_tables import NotStarted, ProviderTables
from scheduler.overcommit.repair_victims import is_evictable

logger = logging.getLogger(__name__)

_RATE, _BURST = 20.0, 100.0
"""Pods a second: a provider that dies may leave thousands behind."""

_AGAIN_SECONDS: Final = 30.0
"""Seconds after which a pod that is still there is asked for again."""

_MOST_REMEMBERED: Final = 20_000

Tell = Callable[[PodInfo, str, str], None]
"""Posts an event soon, and never waits: the pod it is about, its reason, its note."""


class ProviderWatch:
    """`step` is called again and again by one thread; figures are for any."""

    def __init__(
        self,
        tables: ProviderTables,
        session: Session,
        scheduler_names: Collection[str],
        *,
        locked: Callable[[], AbstractContextManager[object]],
        tell: Tell = lambda pod, reason, note: None,
        may_write: Callable[[], bool] = lambda: True,
        affording: Affording | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        scheduler_names : names of our schedulers
        locked          : takes the lock of the tables
        tell            : called with pods that are taken back, and those that no controller would make anew
        may_write       : whether this replica leads
        affording       : how many pods Jobs can afford to lose; None = any number
        clock           : unix seconds
        """
        self._tables, self._session, self._names = tables, session, frozenset(scheduler_names)
        self._locked, self._tell, self._may_write, self._clock = locked, tell, may_write, clock
        self._affording = affording
        self._bucket = TokenBucket(_RATE, _BURST)
        self._asked: dict[str, float] = {}  # UIDs, and when
        self._told: dict[str, None] = {}  # UIDs of pods that were only reported
        self._running: set[str] = set()
        self._outcomes: Counter[tuple[str, TakebackOutcome]] = Counter()

    @property
    def outcomes(self) -> Counter[tuple[str, TakebackOutcome]]:
        """Pods to be taken back so far, by name of the provider and what became of it."""
        return Counter(self._outcomes)

    def step(self) -> None:
        with self._locked():
            self._tables.advance()
            found = self._tables.not_started()
        self._forget({one.pod.uid for one in found})
        if not self._may_write():
            return
        now = self._clock()
        if self._affording is not None:
            self._affording.begin(now)
        for one in found:
            if not is_evictable(one.pod, self._names):
                self._tell_once(one, "NotStarted", "no controller would create it anew")
                continue
            asked = self._asked.get(one.pod.uid)
            if one.pod.uid in self._running or (asked is not None and 0 <= now - asked < _AGAIN_SECONDS):
                continue
            if self._is_too_much(one):
                continue
            if not self._bucket.take(now):
                return
            self._submit(one, now)

    # Inside

    def _is_too_much(self, one: NotStarted) -> bool:
        if self._affording is None or not (why := self._affording.refusal(one.pod)):
            return False
        self._tell_once(one, "NotTakenBack", why)
        return True

    def _submit(self, one: NotStarted, now: float) -> None:
        self._asked[one.pod.uid] = now
        self._running.add(one.pod.uid)
        if self._affording is not None:
            self._affording.takes(one.pod, now)
        if begin(self._session, self._take_back(one, now)) is None:
            self._running.discard(one.pod.uid)
            self._stays(one.pod)

    async def _take_back(self, one: NotStarted, now: float) -> None:
        pod = one.pod
        fields = {"pod": f"{pod.namespace}/{pod.name}", "node": pod.node, "provider": one.provider}
        try:
            done = await take_back(self._session, one, now)
            self._outcomes[one.provider, done.outcome] += 1
            if done.outcome in (TakebackOutcome.STARTED, TakebackOutcome.CHANGED):
                self._stays(pod)
            if done.outcome is TakebackOutcome.TAKEN_BACK:
                logger.info("a pod that has not started is taken back", extra=fields | {"failure": one.failure.value})
                self._tell(pod, "TakenBack", f"deleted, for its controller to make it anew: {why_of(one)}")
            elif done.outcome is TakebackOutcome.FAILED:
                logger.warning("a pod that has not started cannot be taken back", extra=fields | {"why": done.why})
        except Exception:
            self._outcomes[one.provider, TakebackOutcome.FAILED] += 1
            logger.exception("a pod that has not started cannot be taken back", extra=fields)
        finally:
            self._running.discard(pod.uid)

    def _stays(self, pod: PodInfo) -> None:
        if self._affording is not None:
            self._affording.stays(pod.uid)

    def _tell_once(self, one: NotStarted, reason: str, why: str) -> None:
        if one.pod.uid not in self._told and len(self._told) < _MOST_REMEMBERED:
            self._told[one.pod.uid] = None
            self._tell(one.pod, reason, f"{why_of(one)}; {why}, so it is left there")

    def _forget(self, still_there: Collection[str]) -> None:
        for uid in self._asked.keys() - still_there:
            del self._asked[uid]
        for uid in self._told.keys() - still_there:
            del self._told[uid]
