"""Carries a relief out: cordon the node, evict one pod after the other, wait for each replacement, uncordon it.

It ends when the node is cool, when nothing more helps, at the first replacement that is not ready in time, at the first
eviction of which it is not known what became of it, and at Ctrl-C; the node is uncordoned in each of these cases. What
it evicts is what the relief named, or less.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

import numpy as np
from kubernetes import client

from base.arrays import Floats
from base.errors import InputError
from cluster.live_tables import LiveTables
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from forecast_scheduler.commands.relieve.relieve_node import Relieving
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import change_windows
from kube.client.cluster_access import ClusterAccess
from kube.client.eviction import Evict, Evicted, api_server_evict
from kube.client.kubernetes_client import send
from kube.client.pod_writes import MERGE
from kube.objects.objects import PodInfo
from rebalancer.hot_node import NO_SERVICE, HotNodeRelief, ReliefMove
from rebalancer.plan_maker import PlanMaker
from scorer.highest_peak import share_of
from scorer.load_scale import percent

_REQUEST_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.5


def carry_out(
    relieving: Relieving, relief: HotNodeRelief, settings: Settings, access: ClusterAccess, say: Callable[[str], None]
) -> None:
    """Move the pods of a relief. say: gets a line for each step. Raises InputError before anything is done."""
    tables = relieving.planning.scorer.tables
    zone = relief.now.tzinfo if isinstance(relief.now.tzinfo, ZoneInfo) else ZoneInfo("UTC")
    if closed := change_windows(settings).closed(relief.now, zone):
        raise InputError(f"{closed}: type the commands of the report without --apply, if it cannot wait")
    api = access.client()
    with tables.reading() as cluster:
        info = cluster.state.nodes[cluster.state.row_of[relief.node]]
        was_cordoned = info is not None and info.unschedulable
    if not was_cordoned:
        _cordon(api, relief.node, cordoned=True)
    try:
        if not was_cordoned:
            say(f"cordoned {relief.node}")
        evict_one_by_one(relieving, relief, settings, api_server_evict(api), say)
    finally:
        if not was_cordoned:
            _cordon(api, relief.node, cordoned=False)
            say(f"uncordoned {relief.node}")


def evict_one_by_one(
    relieving: Relieving, relief: HotNodeRelief, settings: Settings, evict: Evict, say: Callable[[str], None]
) -> None:
    """Evict the pods of a relief, each after the replacement of the one before is ready."""
    tables, maker = relieving.planning.scorer.tables, relieving.planning.maker
    deadline = settings.rebalance.execution.ready_deadline
    gone: list[tuple[float, Floats]] = []
    for move in relief.moves:
        name = f"{move.pod.namespace}/{move.pod.name}"
        if gone and not _look(relieving, relief.node, gone, settings).is_hot:
            say(f"{relief.node} is under {percent(settings.hot_share)}: {name} need not move any more")
            break
        if why := _hindrance(maker, move):
            say(f"{name} stays: {why}")
            continue
        known = _pods_of(tables, move.service)
        found = evict(move.pod)
        if found.outcome is Evicted.REFUSED:
            say(f"{name} stays: {found.why or found.outcome.value}")
            continue
        if found.outcome is not Evicted.GOING:
            became = "may have been evicted" if found.outcome is Evicted.UNKNOWN else "stays"
            say(f"{name} {became}: {found.why}: nothing more is evicted")
            break
        gone.append((time.time(), move.used))
        say(f"evicted {name}")
        came = _replacement(tables, move.service, known, deadline)
        if came is None:
            say(f"no replacement of {name} is ready after {deadline:g} s: nothing more is evicted")
            break
        where = "as expected" if came.node == move.target else f"{move.target} was expected"
        say(f"{came.namespace}/{came.name} is ready on {came.node}: {where}")
    now = _look(relieving, relief.node, gone, settings)
    say(
        f"{len(gone)} pods were moved: {relief.node} has an expected peak of {percent(share_of(now.peak))} in the next "
        f"24 hours, and uses {percent(now.measured)} now, less what is still measured of the moved pods"
    )


def _hindrance(maker: PlanMaker, move: ReliefMove) -> str:
    """Return why a pod must not be evicted any more, as things are now; '' = it may."""

    def of_replicas(replicas: int | None) -> str:
        if replicas is None:
            return "it is gone"
        return NO_SERVICE if replicas <= 1 and not move.service.runs_to_completion else ""

    return maker.hindrance(move.pod.uid, of_replicas)


def _look(relieving: Relieving, node: str, gone: Sequence[tuple[float, Floats]], settings: Settings) -> HotNodeRelief:
    """Look at the node anew. gone: when pods were evicted, in unix seconds, and what they used: it is still measured"""
    tables, begin = relieving.planning.scorer.tables, time.time() - settings.prometheus.step
    tables.measure()
    tables.tick()
    return relieving.look(node, sum((used for at, used in gone if at > begin), start=np.zeros(len(RESOURCES))))


def _pods_of(tables: LiveTables, service: ServiceKey) -> dict[str, PodInfo]:
    """Return the pods of a service, by UID."""
    with tables.reading() as cluster:
        state = cluster.state
        return {uid: pod for uid, pod in state.pods.items() if state.service_key(pod) == service}


def _replacement(tables: LiveTables, service: ServiceKey, known: Collection[str], deadline: float) -> PodInfo | None:
    """Wait for a pod of the service that was not there before and is ready. None = none was in time (seconds)"""
    until = time.monotonic() + deadline
    while time.monotonic() < until:
        for uid, pod in _pods_of(tables, service).items():
            if uid not in known and pod.node and pod.ready is not None and not pod.terminating:
                return pod
        time.sleep(_LOOK_SECONDS)
    return None


def _cordon(api: client.ApiClient, node: str, *, cordoned: bool) -> None:
    """Raises InputError if the API server does not do it."""
    body = json.dumps({"spec": {"unschedulable": cordoned or None}}).encode()
    path = f"/api/v1/nodes/{quote(node, safe='')}"
    answer = send(api, "PATCH", path, body, content_type=MERGE, seconds=_REQUEST_SECONDS)
    if not answer.is_success:
        if cordoned and answer.why_none:
            raise InputError(f"{node} may be cordoned: {answer.text}; no pod was evicted: type kubectl uncordon {node}")
        verb = "cordon" if cordoned else "uncordon"
        raise InputError(f"{node} was not {verb}ed: {answer.text}; type kubectl {verb} {node}")
