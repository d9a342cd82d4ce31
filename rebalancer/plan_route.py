"""GET /v1/rebalance: what moves would help tonight, and how the rebalancer stands."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from msgspec import Struct
from starlette.responses import Response

from rebalancer.answers import RebalanceAnswer, answer_of
from rebalancer.rebalancing import RebalancingState
from scorer.service.openapi import answer
from scorer.service.state import TheService
from serving.errors import json_response

PATH = "/rebalance"


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
