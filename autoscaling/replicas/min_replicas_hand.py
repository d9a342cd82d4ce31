"""Raises and restores `minReplicas`, as one of the hands of the service `autoscale`.

    act      list the autoscalers, decide (raising.py), patch each on the version that was read
    retreat  restore the originals; what is left alone to others stays so, but for `autoscale --release`

Each patch holds the value and its record, so that a killed writer leaves nothing half done. An autoscaler that others
write to at the same time waits for the next turn.

Needs list, get and patch on horizontalpodautoscalers; list on namespaces and resourcequotas; create on events.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from autoscaling.autoscale_settings import MinReplicasOptions
from autoscaling.nodes.guard import GuardedNodes
from autoscaling.nodes.owned_objects import MISSING, SECONDS, TRIES, NodesError, is_over, required
from autoscaling.replicas.horizontal_autoscalers import (
    ASKS_LABEL,
    MANAGER,
    HorizontalAutoscaler,
    leave_body,
    list_path,
    object_path,
    raise_body,
    read,
    read_page,
    reference,
    restore_body,
)
from autoscaling.replicas.loads_ahead import LoadsAhead
from autoscaling.replicas.raising import MinimumChange, MinimumOutcome, Raising
from autoscaling.replicas.room import QUOTAS_PATH, Room, read_quotas
from autoscaling.requests.resize_requests import namespaces_path
from autoscaling.services_ahead import ServicesAhead
from base.errors import ForecastError
from base.excluded import ExcludedOptions
from kube.client.pod_writes import MERGE
from kube.failure_notice import FailureNotice
from kube.session.session_calls import Requests, request_with_retries

logger = logging.getLogger(__name__)

_EVENTS: Final = {
    MinimumOutcome.RAISED: ("MinReplicasRaised", False),
    MinimumOutcome.LOWERED: ("MinReplicasLowered", False),
    MinimumOutcome.RESTORED: ("MinReplicasRestored", False),
    MinimumOutcome.LEFT: ("MinReplicasTakenOver", True),
}
"""Reason of the event of each outcome, and whether it is a warning."""


class _Events(Protocol):
    """kube.events.event_recorder.EventRecorder."""

    def record(self, regarding: dict[str, str], reason: str, note: str, *, is_warning: bool) -> bool:
        """Post an event soon."""


class MinReplicasHand:
    """Implements autoscaling.autoscaler.Hand. For the event loop of the session.

    loads : the load ahead as the external metric says it
    nodes : the nodes as they are now
    done  : writes so far by outcome, and `conflict`
    kept  : why autoscalers that ask kept their minimum in the last turn
    raised : replicas above the original minimums, together
    """

    name: Final = "min-replicas"

    def __init__(
        self,
        session: Requests,
        options: MinReplicasOptions,
        *,
        loads: Callable[[], LoadsAhead],
        nodes: Callable[[], GuardedNodes],
        events: _Events,
        excluded: ExcludedOptions,
        keeps_marks: bool,
        seconds: float = SECONDS,
    ) -> None:
        """
        keeps_marks : whether a retreat leaves the marks of those left alone: the next leader would fight with others
        seconds     : timeout of one request
        """
        self._keeps_marks = keeps_marks
        self._session, self._seconds, self._loads, self._nodes = session, seconds, loads, nodes
        self._events, self._raising = events, Raising(options, excluded)
        self._said: dict[str, str] = {}  # UID -> why it kept its minimum, as the last event said
        self._none_asks = FailureNotice(logger, "no minReplicas is raised")
        self._cannot_read = FailureNotice(logger, "HorizontalPodAutoscalers are left out", "all can be read again")
        self.done: Final[Counter[str]] = Counter()
        self.kept: Counter[str] = Counter()
        self.raised = 0

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        """Bring each minimum to what the load ahead asks for. Raises ForecastError, see Hand."""
        answer = await self._get(namespaces_path(f"{ASKS_LABEL}=true"), "namespaces were not listed")
        asking = frozenset(one.metadata.name for one in msgspec.json.decode(answer, type=_Named).items)
        found = await self._listed(asking)
        if any(one.asks for one in found):
            self._none_asks.succeeded()
            quotas = read_quotas(await self._get(QUOTAS_PATH, "resourcequotas were not listed"))
        else:
            quotas = {}
            self._none_asks.failed(
                f"no HorizontalPodAutoscaler has the label {ASKS_LABEL}: true, nor its namespace "
                "(docs/use/autoscaling.md)"
            )
        decision = self._raising.decide(found, ahead, self._loads(), Room(self._nodes(), quotas), now)
        self.kept = decision.counted()
        self.raised = sum(one.record.raised - one.record.original for one in found if one.record is not None)
        self._report({of.uid: (of, why, note) for of, why, note in decision.kept if note})
        errors = list[ForecastError]()
        for change in decision.changes:
            try:
                await self._carry_out(change, now)
            except ForecastError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def retreat(self) -> None:
        """Restore all originals. Raises ForecastError where some could not be: ask again."""
        errors = list[ForecastError]()
        for one in await self._listed(frozenset()):
            if one.record is not None or (one.left_until and not self._keeps_marks):
                try:
                    await self._restore(one)
                except ForecastError as error:
                    errors.append(error)
        self._raising.forget()
        self._said.clear()
        self.kept, self.raised = Counter(), 0
        if errors:
            raise errors[0]

    def metrics(self) -> Iterator[Metric]:
        """Writes by outcome, what is raised, and what was left alone."""
        done = CounterMetricFamily(
            "forecast_autoscale_min_replicas_writes",
            "Writes of minReplicas by what became of them: raised, lowered, restored, left, conflict.",
            labels=["outcome"],
        )
        for outcome, count in list(self.done.items()):
            done.add_metric([outcome], count)
        yield done
        kept = GaugeMetricFamily(
            "forecast_autoscale_kept_min_replicas",
            "Autoscalers that ask for it and kept their minReplicas, or got less than was wanted, in the last turn.",
            labels=["because"],
        )
        for why, count in list(self.kept.items()):
            kept.add_metric([why], count)
        yield kept
        yield GaugeMetricFamily(
            "forecast_autoscale_raised_min_replicas",
            "Replicas by which minReplicas of all autoscalers exceed their originals.",
            value=float(self.raised),
        )

    # Inside

    async def _carry_out(self, change: MinimumChange, now: float) -> None:
        of = change.of
        body = {
            MinimumOutcome.RAISED: lambda: raise_body(of, change.minimum),
            MinimumOutcome.LOWERED: lambda: raise_body(of, change.minimum),
            MinimumOutcome.RESTORED: lambda: restore_body(of),
            MinimumOutcome.LEFT: lambda: leave_body(of, change.until),
        }[change.outcome]()
        if not await self._patch(of, body):
            self.done["conflict"] += 1
            return
        self._raising.wrote(change, now)
        self.done[change.outcome.value] += 1
        if change.outcome in (MinimumOutcome.RAISED, MinimumOutcome.LOWERED):
            self.raised += change.minimum - of.minimum
        elif of.record is not None:
            self.raised -= of.record.raised - of.record.original
        reason, is_warning = _EVENTS[change.outcome]
        self._events.record(reference(of), reason, change.why, is_warning=is_warning)

    async def _restore(self, one: HorizontalAutoscaler) -> None:
        current: HorizontalAutoscaler | None = one
        for _ in range(TRIES):
            if current is None or (current.record is None and not current.left_until):
                return
            if await self._patch(current, restore_body(current)):
                self.done[MinimumOutcome.RESTORED.value] += 1
                return
            self.done["conflict"] += 1
            path = object_path(one.namespace, one.name)
            answer = await request_with_retries(self._session, "GET", path, seconds=self._seconds)
            if answer.status == MISSING:
                return
            current = read(required(answer, f"autoscaler {one.name} was not read").body, frozenset())
            current = current if current is not None and current.uid == one.uid else None
        raise NodesError(f"minReplicas of {one.namespace}/{one.name} was not restored: others wrote to it: try again")

    def _report(self, kept: dict[str, tuple[HorizontalAutoscaler, str, str]]) -> None:
        """One event when the reason changes."""
        for uid, (of, why, note) in kept.items():
            if self._said.get(uid) != why:
                self._events.record(reference(of), "MinReplicasKept", note, is_warning=True)
        self._said = {uid: why for uid, (_, why, _) in kept.items()}

    async def _listed(self, asking: frozenset[str]) -> list[HorizontalAutoscaler]:
        found: list[HorizontalAutoscaler] = []
        unreadable, token = 0, ""
        while True:
            page = read_page(await self._get(list_path(token), "autoscalers were not listed"), asking)
            found += page.found
            unreadable, token = unreadable + page.unreadable, page.token
            if not token:
                break
        if unreadable:
            self._cannot_read.failed(f"{unreadable} of {unreadable + len(found)} have fields that we do not know")
        else:
            self._cannot_read.succeeded()
        return found

    async def _get(self, path: str, what: str) -> bytes:
        return required(await request_with_retries(self._session, "GET", path, seconds=self._seconds), what).body

    async def _patch(self, of: HorizontalAutoscaler, body: bytes) -> bool:
        """Whether there is nothing left to do; False = another client wrote to it meanwhile."""
        path = f"{object_path(of.namespace, of.name)}?fieldManager={MANAGER}"
        answer = await self._session.request("PATCH", path, body, content_type=MERGE, seconds=self._seconds)
        return is_over(answer, f"minReplicas of {of.namespace}/{of.name} was not changed")


class _Name(msgspec.Struct):
    name: str


class _Item(msgspec.Struct):
    metadata: _Name


class _Named(msgspec.Struct):
    items: list[_Item]
