"""What nodes and services will use, and what nodes have left now."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from starlette.responses import Response

from base.errors import InputError, UnknownName
from forecast.service_key import ServiceKey
from scorer.answers import NodeReport, Services, UsageForecast
from scorer.service.scorer_openapi import answer
from scorer.service.scorer_state import ReadyService
from serving.json_answers import Refusal, json_response

router = APIRouter(prefix="/v1", tags=["forecasts"])

# The longest name Kubernetes gives anything is 253 characters.
Name = Annotated[str, InPath(min_length=1, max_length=253)]


class Sort(StrEnum):
    """Order of the nodes."""

    NAME = "name"
    PEAK = "peak"


Day = Annotated[date | None, Query(description="A local day of the model's time zone; today if left out.")]


@router.get("/nodes", responses=answer("Nodes", 422))
async def nodes(
    service: ReadyService,
    sort: Annotated[Sort, Query(description="`peak`: the highest predicted peak of the day first.")] = Sort.NAME,
    top: Annotated[int | None, Query(ge=1, description="How many nodes; all if left out.")] = None,
    on: Day = None,
) -> Response:
    """Nodes with their predicted peaks of today, tomorrow and the day asked for."""
    return await service.in_thread(
        lambda: json_response(service.scorer.nodes(by_peak=sort is Sort.PEAK, top=top, day=on))
    )


@router.get("/nodes/{node}", responses=answer("NodeReport", 404, 422))
async def node_report(
    node: Name,
    service: ReadyService,
    top: Annotated[int, Query(ge=0, le=50, description="For how many of its largest pods to find another node.")] = 5,
    on: Day = None,
) -> Response:
    """What makes the peak of a node on a day: curve, services, and the best other node for each of its largest pods."""

    def found() -> NodeReport:
        try:
            return service.scorer.node_report(node, day=on, top=top)
        except UnknownName as error:
            raise Refusal(404, str(error)) from error

    return await service.in_thread(lambda: json_response(found()))


@router.get("/nodes/{node}/forecast", responses=answer("UsageForecast", 404, 422))
async def node_forecast(node: Name, service: ReadyService) -> Response:
    """Usage of one node, from two days ago to the end of the horizon."""

    def found() -> UsageForecast:
        try:
            return service.scorer.node_forecast(node)
        except UnknownName as error:
            raise Refusal(404, str(error)) from error

    return await service.in_thread(lambda: json_response(found()))


@router.get("/services", responses=answer("Services"))
async def services(service: ReadyService) -> Response:
    """All services that have pods."""
    return await service.in_thread(lambda: json_response(Services(service.scorer.services())))


@router.get("/services/{namespace}/{kind}/{name}/forecast", responses=answer("UsageForecast", 404, 422))
async def service_forecast(namespace: Name, kind: Name, name: Name, service: ReadyService) -> Response:
    """Usage of all pods of one service together. `kind` is that of the top owner: Deployment, CronJob, ..."""

    def found() -> UsageForecast:
        try:
            return service.scorer.service_forecast(ServiceKey(namespace, kind, name))
        except InputError as error:
            raise Refusal(404 if isinstance(error, UnknownName) else 422, str(error)) from error

    return await service.in_thread(lambda: json_response(found()))


@router.get("/virtual-available", responses=answer("VirtualAvailability"))
async def virtual_available(service: ReadyService) -> Response:
    """What every node has left now: capacity - usage at the last metric - virtual requests not yet seen in it."""
    return await service.in_thread(lambda: json_response(service.scorer.virtual_available()))


@router.get("/heat-map", responses=answer("HeatMap", 422))
async def heat_map(
    service: ReadyService,
    resource: Annotated[str | None, Query(max_length=100, description="Whichever is highest if left out.")] = None,
    top: Annotated[int, Query(ge=1, le=1000, description="How many nodes, hottest first.")] = 100,
) -> Response:
    """Predicted load of the hottest nodes, hour by hour, over the coming week."""
    return await service.in_thread(lambda: json_response(service.scorer.heat_map(resource=resource or None, top=top)))
