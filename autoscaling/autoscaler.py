"""The service at work: works out what is expected, shows it on its page and as metrics, and as the leader lets its
hands act on it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autoscaling.autoscale_settings import AutoscaleOptions
from autoscaling.replicas.loads_ahead import METRIC, LoadsAhead, loads_ahead
from autoscaling.replicas.used_now import PodUsageSource, used_by_service
from autoscaling.services_ahead import ServicesAhead, services_ahead
from base.errors import ForecastError
from base.excluded import ExcludedOptions
from cluster.degradation import Level
from cluster.live_tables import LiveTables
from forecast.resources import RESOURCES
from kube.failure_notice import Troubles
from kube.session.session_calls import SubmitsCoroutines, wait_for

logger = logging.getLogger(__name__)

_TURN_SECONDS: Final = 30.0
"""For one hand in one turn: the rest is for the next one. The loads wait meanwhile: the same thread works them out."""

_RETREAT_SECONDS: Final = 20.0
"""For all hands at the end: what is left is taken back by the next leader."""


class Hand(Protocol):
    """Writes one kind of thing: buffers, marks of nodes, requests of pods.

    All that must outlive this process is on the API server, in objects or annotations that bear our name. So a new
    leader, or this process after a restart, continues where the last one stopped.
    """

    @property
    def name(self) -> str:
        """For the log, the metrics and the page."""

    async def act(self, ahead: ServicesAhead, now: float) -> None:
        """Bring what is written to what the forecast asks for. As the leader, every `autoscale.act_every` seconds.

        It may be cancelled at each of its requests, as by a kill: what takes too long goes on in the next turn.

        now : unix seconds
        Raises ForecastError where the API server refuses or is not there; the next call tries again.
        """

    async def retreat(self) -> None:
        """Take back all that bears our name: there is no usable forecast, or the leader ends. May be called again.

        Raises as `act` does.
        """

    def metrics(self) -> Iterator[Metric]:
        """What it did and decided since this process leads. For any thread."""


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """For metrics and the page.

    has_forecast : whether there is one that may be acted on
    acting  : names of the hands that acted when they were last asked; the others have taken back what they wrote
    trouble : what could not be done; '' = nothing went wrong
    silent_because : why no load is said; '' = some are
    """

    loads: LoadsAhead = field(default_factory=LoadsAhead)
    has_forecast: bool = False
    leads: bool = False
    acting: tuple[str, ...] = ()
    trouble: str = ""
    silent_because: str = ""


class Autoscaler:
    """`step` is called again and again by one thread, `end` once afterwards; `state` may be read by any."""

    def __init__(
        self,
        tables: LiveTables,
        pods: PodUsageSource | None,
        session: SubmitsCoroutines,
        hands: Sequence[Hand],
        options: AutoscaleOptions,
        *,
        leads: Callable[[], bool],
        excluded: ExcludedOptions,
        steady: Callable[[], float] = time.monotonic,
        turn: float = _TURN_SECONDS,
    ) -> None:
        """
        pods     : None = usage of pods is not measured, so no load is said
        excluded : services that are left alone
        steady   : seconds that pass evenly
        turn     : seconds that one hand may take in one turn
        """
        self._tables, self._pods, self._session, self._hands = tables, pods, session, tuple(hands)
        self._options, self._leads, self._steady, self._turn = options, leads, steady, turn
        self._excluded = excluded
        self._ending = False
        self._running: Future[None] | None = None
        self._due = float("-inf")
        self._lock = threading.Lock()
        self._state = AutoscalerState()
        self._troubles = Troubles(logger, "autoscaling")

    @property
    def state(self) -> AutoscalerState:
        """Return how it stands."""
        with self._lock:
            return self._state

    def loads(self) -> LoadsAhead:
        """Return the loads that may be said: none if they are too old, because usage cannot be read."""
        loads = self.state.loads
        age = self._tables.clock() - loads.at
        return loads if age <= self._options.replicas.fresh else LoadsAhead()

    def step(self) -> None:
        """Look, and act where this replica leads. A part that fails keeps no other from its turn."""
        leads, ahead = self._leads(), services_ahead(self._tables, self._excluded)
        self._troubles.attempt("loads", lambda: self._look(ahead))
        if not leads:
            self._due = float("-inf")
            for hand in self._hands:
                self._troubles.note(hand.name, "")
            self._note(acting=())
        elif self._steady() >= self._due:
            self._due = self._steady() + self._options.act_every
            self._act(ahead)
        self._note(leads=leads, has_forecast=ahead is not None, trouble=str(self._troubles))

    def end(self) -> None:
        """Take back what was written, while this replica leads. What a hand fails at is left to the next leader."""
        with self._lock:
            self._ending, running = True, self._running
        if running is not None:
            running.cancel()  # it would write anew what is taken back here
        if self._leads():
            until = self._steady() + _RETREAT_SECONDS
            for hand in self._hands:
                self._troubles.attempt(
                    hand.name,
                    lambda hand=hand: self._run(hand, hand.retreat(), until - self._steady(), ends=True),  # type: ignore[misc]
                )

    # Inside

    def _look(self, ahead: ServicesAhead | None) -> None:
        loads, why = LoadsAhead(), self._why_nothing_ahead(ahead)
        if ahead is not None and self._pods is not None:
            measured = self._pods.pods()
            used = used_by_service(self._tables, measured, ahead.services, len(RESOURCES))
            loads = loads_ahead(ahead, used, measured.middle, self._tables.clock(), self._options.replicas)
            if not why and not loads.by_namespace:
                why = f"Prometheus has no usage of the pods of the {len(ahead.services)} services that the model knows"
        if why and why != self.state.silent_because:
            logger.warning("no load is said", extra={"why": why})
        self._note(loads=loads, silent_because=why)

    def _why_nothing_ahead(self, ahead: ServicesAhead | None) -> str:
        if ahead is None:
            with self._tables.reading():
                reasons = self._tables.level()[1]
            return f"there is no forecast to act on: {'; '.join(reasons) or 'the cluster is not read yet'}"
        if self._pods is None:
            return "usage of pods is not measured: name a server with --prometheus or prometheus.url"
        if not ahead.services:
            return (
                "no service that the model knows has pods: Jobs, new services and those of `excluded` are left out; "
                "`forecast-scheduler report` lists the services of the model"
            )
        return ""

    def _act(self, ahead: ServicesAhead | None) -> None:
        if ahead is None and self._is_unheard():
            # What is written stays: the forecast is not wrong, only the cluster is not seen (docs/use/autoscaling.md).
            self._note(acting=())
            return
        acting = []
        for hand in self._hands:
            work = hand.retreat() if ahead is None else hand.act(ahead, self._tables.clock())
            went_well = self._troubles.attempt(
                hand.name,
                lambda hand=hand, work=work: self._run(hand, work, self._turn),  # type: ignore[misc]
            )
            if went_well and ahead is not None:
                acting.append(hand.name)
        self._note(acting=tuple(acting))

    def _is_unheard(self) -> bool:
        with self._tables.reading():
            return self._tables.level()[0] is Level.NEUTRAL

    def _run(self, hand: Hand, work: Coroutine[Any, Any, None], seconds: float, *, ends: bool = False) -> None:
        """Wait for the work of a hand. Raises ForecastError, whatever goes wrong: no hand keeps others from theirs."""
        with self._lock:
            if self._ending and not ends:
                work.close()
                return
        try:
            future = self._session.submit(work)
            with self._lock:
                self._running = future
                is_late = self._ending and not ends
            if is_late:
                future.cancel()
            wait_for(future, seconds, hand.name)
        except TimeoutError as error:
            raise ForecastError(
                f"{hand.name}: not finished in time; the next turn goes on, or the next leader, or "
                "`forecast-scheduler autoscale --release`"
            ) from error
        except ForecastError:
            raise
        except CancelledError as error:
            raise ForecastError(f"{hand.name}: stopped, as this process ends") from error
        except Exception as error:
            logger.exception("a hand of the autoscaler failed", extra={"hand": hand.name})
            raise ForecastError(f"{hand.name}: {type(error).__name__}: {error}: see the log") from error

    def _note(self, **changes: Any) -> None:
        with self._lock:
            self._state = replace(self._state, **changes)


class AutoscalingCollector(Collector):
    """Implements prometheus_client's Collector. loads: those that may be said; hands: all that may act"""

    def __init__(
        self, state: Callable[[], AutoscalerState], loads: Callable[[], LoadsAhead], hands: Sequence[Hand]
    ) -> None:
        self._state, self._loads, self._hands = state, loads, tuple(hands)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; a service whose usage is not measured has no load."""
        state = self._state()
        loads = GaugeMetricFamily(
            METRIC,
            "Load to have replicas for: highest that all pods of the service together are expected to have within the "
            "lead, in base units.",
            labels=["namespace", "kind", "name", "resource"],
        )
        for one in self._loads():
            loads.add_metric([one.namespace, *one.labels.values()], one.value)
        yield loads
        yield _gauge("leading", "1 = this replica writes.", state.leads)
        yield _gauge("has_forecast", "1 = there is a forecast that may be acted on.", state.has_forecast)
        yield _gauge("held_up", "1 = something that was due could not be done.", bool(state.trouble))
        acting = GaugeMetricFamily(
            "forecast_autoscale_acting", "1 = acted when it was last asked, as the leader.", labels=["hand"]
        )
        for hand in self._hands:
            acting.add_metric([hand.name], float(hand.name in state.acting))
        yield acting
        for hand in self._hands:
            yield from hand.metrics()


def _gauge(name: str, help_text: str, value: bool) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"forecast_autoscale_{name}", help_text, value=float(value))
