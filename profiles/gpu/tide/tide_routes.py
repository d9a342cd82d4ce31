"""GET /v1/tide, and the report of the tide as its body."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from profiles.gpu.tide.tide_bodies import (
    TideBody,
    TideMoveBody,
    TidePointBody,
    TidePoolBody,
    TideTrainingBody,
)
from profiles.gpu.tide.tide_report import ReportedMove, ReportedTraining, TideReport
from scorer.service.scorer_openapi import answer
from scorer.service.scorer_state import TheService
from serving.json_answers import json_response

MOST_HOURS: Final = 168.0
Hours = Annotated[float, Query(gt=0, le=MOST_HOURS, description="Hours of the plan to show, from now.")]


def tide_body(report: TideReport, *, hours: float, namespace: str | None) -> TideBody:
    """Return the plan of the next `hours`; trainings and moves of one namespace, if one is named."""
    until = report.made + 3600 * hours

    def is_meant(key: str) -> bool:
        return namespace is None or key.startswith(f"{namespace}/")

    return TideBody(
        made=_moment(report.made),
        no_forecast_because=report.no_forecast_because or None,
        writes_nothing_because=report.writes or None,
        pools=[_pool_body(report, at, until) for at in range(len(report.pools))],
        trainings=[_training_body(one, report) for one in report.trainings if is_meant(one.training.key)],
        moves=[_move_body(one) for one in report.moves if is_meant(one.move.training.key)],
        ahead=[_move_body(one) for one in report.ahead if is_meant(one.move.training.key) and one.move.at <= until],
        unread=dict(report.failures),
    )


def _pool_body(report: TideReport, at: int, until: float) -> TidePoolBody:
    demand, levels = report.demand, report.levels
    assert demand is not None and levels is not None and report.training is not None and report.others is not None
    points = [
        TidePointBody(
            start=_moment(float(start)),
            expected_gpus=round(float(demand.expected[at, slot]), 2),
            needed_gpus=float(demand.need[at, slot]),
            training_gpus=float(levels[at, slot]) if slot < levels.shape[1] else None,
        )
        for slot, start in enumerate(demand.starts[:-1])
        if start <= until
    ]
    return TidePoolBody(
        pool=report.pools[at],
        capacity_gpus=float(demand.capacity[at]),
        inference_gpus=round(float(report.others[at]), 3),
        waiting_gpus=round(float(demand.waiting[at]), 3),
        training_gpus=round(float(report.training[at]), 3),
        ahead=points,
    )


def _training_body(told: ReportedTraining, report: TideReport) -> TideTrainingBody:
    one = told.training
    return TideTrainingBody(
        training=one.key,
        pool=report.pools[one.pool],
        gpus_per_replica=one.gpus,
        replicas=one.replicas,
        min_replicas=one.least,
        max_replicas=one.most,
        lead_seconds=one.lead,
        stopped=one.taken,
        pods_wait=one.waiting,
        moves_today=told.moves_today,
        mistakes=told.mistakes,
    )


def _move_body(told: ReportedMove) -> TideMoveBody:
    move = told.move
    return TideMoveBody(
        training=move.training.key,
        kind=move.kind.value,
        at=_moment(move.at),
        before=move.before,
        after=move.after,
        gpus=move.gpus,
        beyond_cap=move.beyond_cap,
        why=told.why,
        outcome=told.outcome,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


Namespace = Annotated[str | None, Query(description="Only trainings of this namespace.")]


def tide_router(report: Callable[[], TideReport]) -> APIRouter:
    """report: of profiles.gpu.tide.tide_controller.Tide, for any thread."""
    router = APIRouter(prefix="/v1", tags=["tide"])

    @router.get("/tide", responses=answer("TideBody", 422))
    async def tide(service: TheService, hours: Hours = 24.0, namespace: Namespace = None) -> Response:
        """GPUs that inference is predicted to need, what training has and is planned to have, every move and why."""

        def look() -> Response:
            return json_response(tide_body(report(), hours=hours, namespace=namespace))

        return await service.in_thread(look)

    return router
