"""How the rebalancer stands: what it plans, does and thinks of itself, at GET /v1/rebalance and as metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fastapi import APIRouter
from msgspec import Struct
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.responses import Response

from rebalancer.plan_forms import RebalanceAnswer, answer_of
from rebalancer.rebalance_settings import RebalanceMode
from rebalancer.rebalancing import RebalancingState
from scorer.service.scorer_openapi import answer
from scorer.service.scorer_state import TheService
from serving.json_answers import json_response

_MODES: Final = (RebalanceMode.OFF, RebalanceMode.SHADOW, RebalanceMode.ON)

PATH = "/rebalance"


class RebalancingCollector(Collector):
    """Implements prometheus_client's Collector."""

    def __init__(self, state: Callable[[], RebalancingState], configured: RebalanceMode) -> None:
        self._state, self._configured = state, configured

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics; those of a plan or a grade are missing where there is none."""
        state = self._state()
        mode = GaugeMetricFamily("forecast_rebalance_mode", "1 for the mode in force.", labels=["mode"])
        for one in _MODES:
            mode.add_metric([one.value], float(state.trust.mode is one))
        yield mode
        yield _gauge("stood_down", "1 = bad nights took away the mode `on` that is set.", float(state.trust.stood_down))
        yield _gauge("bad_nights", "Nights in a row that were graded as bad.", state.trust.bad_nights)
        yield _gauge("leading", "1 = this replica plans and moves.", float(state.leads))
        yield _gauge("active_plans", "Plans under way.", state.active)
        yield _gauge("overloaded_nodes", "Nodes above their bound for several readings.", state.overloaded)
        yield _gauge("held_up", "1 = something that was due could not be done.", float(bool(state.trouble)))
        yield _gauge("foreign_plans", "RebalancePlans left out: not ours, or not to be read.", state.foreign)
        if state.made is not None:
            found = state.made.plan
            yield _gauge("planned_moves", "Moves that would help, as of the last look.", len(state.made.moves))
            hot = GaugeMetricFamily(
                "forecast_rebalance_hot_half_hours",
                "Node half hours over `hot_share` of capacity in the next day, as it is and after the planned moves.",
                labels=["moves"],
            )
            hot.add_metric(["before"], found.hot_before)
            hot.add_metric(["after"], found.hot_after)
            yield hot
        if state.grade is not None:
            gain = GaugeMetricFamily(
                "forecast_rebalance_night_gain",
                "Node half hours of heat that the moves of the last graded night prevented.",
                labels=["kind"],
            )
            gain.add_metric(["predicted"], state.grade.predicted)
            gain.add_metric(["realised"], state.grade.realised)
            yield gain


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"forecast_rebalance_{name}", help_text, value=value)


class RebalanceBody(Struct, frozen=True):
    """How the rebalancer stands.

    mode       : in force: off, shadow or on; because: why it is less than what is set
    bad_nights : in a row
    overloaded : nodes above their bound for several readings
    trouble    : what could not be done; '' = nothing went wrong
    plan       : what would help now; null = not looked yet, or no forecast
    """

    mode: str
    because: str
    bad_nights: int
    leads: bool
    active_plans: int
    overloaded: int
    trouble: str
    plan: RebalanceAnswer | None


def rebalance_body(state: RebalancingState) -> RebalanceBody:
    """Return the answer of the route."""
    trust = state.trust
    return RebalanceBody(
        mode=trust.mode.value,
        because=trust.because,
        bad_nights=trust.bad_nights,
        leads=state.leads,
        active_plans=state.active,
        overloaded=state.overloaded,
        trouble=state.trouble,
        plan=None if state.made is None else answer_of(state.made, trust.mode.value),
    )


def plan_router(state: Callable[[], RebalancingState]) -> APIRouter:
    """Return the route. Every replica answers, whether it leads or not."""
    router = APIRouter(prefix="/v1", tags=["rebalancing"])

    @router.get(PATH, responses=answer("RebalanceBody"))
    async def rebalance(service: TheService) -> Response:
        """Moves that would prevent hot nodes until tomorrow, as of the last look, and what is done about it."""
        return json_response(rebalance_body(state()))

    return router
