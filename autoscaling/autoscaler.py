"""The service at work: works out what is expected, shows it, and as the leader lets its hands act on it.

    every look:  tables + usage of pods --> expected loads            (in every replica: all answer the metrics API)
    leader:      each hand acts; without a usable forecast, and at the end, each takes back what it wrote

What the hands decide is theirs; this file says when each is asked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from autoscaling.hand import Hand
from autoscaling.options import AutoscaleOptions
from autoscaling.replicas.loads_ahead import LoadsAhead, loads_ahead
from autoscaling.replicas.used_now import PodUsageSource, used_by_service
from autoscaling.services_ahead import ServicesAhead, services_ahead
from base.errors import ForecastError
from cluster.degradation import Level
from cluster.live_tables import LiveTables
from forecast.resources import RESOURCES
from kube.troubles import Troubles

logger = logging.getLogger(__name__)

_TURN_SECONDS: Final = 30.0
"""For one hand in one turn: the rest is for the next one. The loads wait meanwhile: the same thread works them out."""
_RETREAT_SECONDS: Final = 20.0
"""For all hands at the end: what is left is taken back by the next leader."""


class Submits(Protocol):
    """kube.session.api_session.ApiSession."""

    def submit(self, work: Coroutine[Any, Any, None], /) -> Future[None]:
        """Run it in the event loop of the session."""


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """For metrics and the page.

    has_forecast : whether there is one that may be acted on
    acting  : names of the hands that acted when they were last asked; the others have taken back what they wrote
    trouble : what could not be done; '' = nothing went wrong
    """

    loads: LoadsAhead = field(default_factory=LoadsAhead)
    has_forecast: bool = False
    leads: bool = False
    acting: tuple[str, ...] = ()
    trouble: str = ""


class Autoscaler:
    """`step` is called again and again by one thread, `end` once afterwards; `state` may be read by any."""

    def __init__(
        self,
        tables: LiveTables,
        pods: PodUsageSource | None,
        session: Submits,
        hands: Sequence[Hand],
        options: AutoscaleOptions,
        *,
        leads: Callable[[], bool],
        steady: Callable[[], float] = time.monotonic,
        turn: float = _TURN_SECONDS,
    ) -> None:
        """
        pods   : None = usage of pods is not measured, so no load is said
        steady : seconds that pass evenly
        turn   : seconds that one hand may take in one turn
        """
        self._tables, self._pods, self._session, self._hands = tables, pods, session, tuple(hands)
        self._options, self._leads, self._steady, self._turn = options, leads, steady, turn
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
        leads, ahead = self._leads(), services_ahead(self._tables)
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
        if ahead is None or self._pods is None:
            self._note(loads=LoadsAhead())
            return
        measured = self._pods.pods()
        used = used_by_service(self._tables, measured, ahead.services, len(RESOURCES))
        now = self._tables.clock()
        self._note(loads=loads_ahead(ahead, used, measured.middle, now, self._options.replicas))

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
            future.result(max(seconds, 0.0))
        except ForecastError:
            raise
        except TimeoutError as error:
            future.cancel()
            raise ForecastError(
                f"{hand.name}: not finished in time; the next turn goes on, or the next leader, or "
                "`forecast-scheduler autoscale --release`"
            ) from error
        except CancelledError as error:
            raise ForecastError(f"{hand.name}: stopped, as this process ends") from error
        except Exception as error:
            logger.exception("a hand of the autoscaler failed", extra={"hand": hand.name})
            raise ForecastError(f"{hand.name}: {type(error).__name__}: {error}: see the log") from error

    def _note(self, **changes: Any) -> None:
        with self._lock:
            self._state = replace(self._state, **changes)
