"""A plan from one look at a cluster, for `rebalance --plan`. Nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from base.errors import InputError
from cluster.tables.cluster_file import ClusterObjects
from forecast_scheduler.commands.live_placing import Placing
from forecast_scheduler.commands.scorer.setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import source_of
from kube.decoding.decoding import Kind
from placement.disruption_budgets import WATCHED_BUDGETS, DisruptionBudgets
from placement.index.index import INDEXED_KINDS
from rebalancer.plan_maker import MadePlan, PlanMaker, PlanSources
from scorer.background import Background
from scorer.scorer import Scorer

_SYNC_SECONDS: Final = 120.0


def plan_once(settings: Settings, inputs: Inputs) -> MadePlan:
    """Return the plan for tonight, as the cluster is now. Raises InputError where there is no forecast."""
    with _open_planning(settings, inputs) as (scorer, background, maker):
        background.wait_synced(_SYNC_SECONDS)
        background.look_for_model()
        scorer.tables.measure()
        scorer.tables.tick()
        made = maker.for_tonight()
    if made is None:
        raise InputError("there is no forecast to plan by: run `forecast-scheduler train`, and pass its --models")
    return made


@contextmanager
def _open_planning(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, Background, PlanMaker]]:
    prepared = prepare_scorer(settings, inputs)
    placing, budgets = Placing(prepared.scorer, settings), DisruptionBudgets()
    sources = PlanSources(placing.may_go, budgets, placing.annotations_of)
    maker = PlanMaker(prepared.scorer.tables, sources, settings.rebalance)
    kinds: Collection[Kind] = INDEXED_KINDS
    if inputs.cluster is not None:

        def read(objects: ClusterObjects) -> None:
            budgets.replace(objects.of(WATCHED_BUDGETS))

        with prepared.following(kinds, on_file=read):
            yield prepared.scorer, prepared.background, maker
        return
    watch = source_of(api_client(prepared.kubeconfig), [Subscription(WATCHED_BUDGETS, budgets)])
    with prepared.following(kinds):
        watch.start()
        try:
            watch.wait_synced(_SYNC_SECONDS)
            yield prepared.scorer, prepared.background, maker
        finally:
            watch.stop()
