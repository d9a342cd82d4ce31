"""Recommendations for the pods of a cluster, by the published model; and manifests, which need their containers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaling.prices.node_prices import NodePrices
from autoscaling.requests.expected_use import live_use
from autoscaling.requests.manifests import cut_by_limits, patches, vertical_pod_autoscalers
from autoscaling.requests.pod_resources import PodContainers, read_containers
from autoscaling.requests.recommendation_report import RequestReport, report_on
from base.errors import InputError
from forecast.service_key import ServiceKey
from forecast_scheduler.commands.node_prices import read_price_sources
from forecast_scheduler.commands.output_format import ManifestFormat
from forecast_scheduler.commands.render.pod_object import pods_of_cluster_file
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, open_scorer
from forecast_scheduler.settings.document import Settings
from kube.client.cluster_access import ClusterAccess
from kube.client.pod_writes import pod_path
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from kube.session.session_calls import call
from scorer.scorer import Scorer

_SYNC_SECONDS: Final = 120.0
_SECONDS: Final = 10.0
_READ_SECONDS: Final = 600.0
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class Manifests:
    """cut: services whose limits are below their recommendation, so that their manifest requests less"""

    objects: list[dict[str, Any]]
    cut: tuple[ServiceKey, ...]


def report_from_cluster(
    settings: Settings, inputs: Inputs, manifests: ManifestFormat | None
) -> tuple[RequestReport, Manifests | None]:
    """The report and, if a format of manifests is given, these. Raises InputError where there is no forecast."""
    sources = read_price_sources(settings.prices)
    with open_scorer(settings, inputs) as (scorer, background):
        background.wait_synced(_SYNC_SECONDS)
        background.look_for_model()
        scorer.tables.tick()
        report, pods = recommended(settings, scorer, sources.price_cluster(scorer.tables))
    if manifests is None:
        return report, None
    wanted = {one.service: pods[one.service] for one in report.found if one.because is None}
    if inputs.cluster is not None:
        containers = containers_in_file(inputs.cluster, wanted)
    else:
        with _session(inputs.access) as session:
            containers = call(session, _containers(session, wanted), _READ_SECONDS, "reading the pods of all services")
    if manifests is ManifestFormat.VPA:
        objects = list(vertical_pod_autoscalers(report.found, containers, datetime.now(UTC)))
    else:
        objects = list(patches(report.found, containers))
    return report, Manifests(objects, cut_by_limits(report.found, containers))


def recommended(
    settings: Settings, scorer: Scorer, prices: NodePrices
) -> tuple[RequestReport, dict[ServiceKey, PodInfo]]:
    """The report on the pods of a cluster that was read whole, and a pod of each service. Raises InputError."""
    use, pods = live_use(scorer.tables)
    return report_on(use, settings.requests, settings.hot_share, settings.excluded, prices), pods


def containers_in_file(path: Path, wanted: Mapping[ServiceKey, PodInfo]) -> dict[ServiceKey, PodContainers]:
    """Containers of these pods, as a cluster file has them."""
    service_of = {(pod.namespace, pod.name): service for service, pod in wanted.items()}
    pods = pods_of_cluster_file(path, service_of)
    return {service_of[name]: read_containers(msgspec.json.encode(pod.pod)) for name, pod in pods.items()}


async def _containers(session: ApiSession, wanted: Mapping[ServiceKey, PodInfo]) -> dict[ServiceKey, PodContainers]:
    """The same from the API server; a pod that is gone is left out."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def read(service: ServiceKey, pod: PodInfo) -> tuple[ServiceKey, PodContainers | None]:
        async with room:
            answer = await session.request("GET", pod_path(pod), None, seconds=_SECONDS)
        if answer.is_success:
            return service, read_containers(answer.body)
        if answer.status == 404:
            return service, None
        raise InputError(f"pod {pod.namespace}/{pod.name} cannot be read: {answer.text}; --out needs get on pods")

    read_pods = await asyncio.gather(*(read(service, pod) for service, pod in wanted.items()))
    return {service: containers for service, containers in read_pods if containers is not None}


@contextmanager
def _session(access: ClusterAccess) -> Iterator[ApiSession]:
    session = ApiSession(access.client(), may_write=lambda: False)
    session.start()
    try:
        yield session
    finally:
        session.stop()
