"""What plans of moves are made with, for commands that look once: a scorer, filters, budgets and the plan maker."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from cluster.tables.cluster_file import ClusterObjects
from forecast_scheduler.commands.live_placing import Placing
from forecast_scheduler.commands.policy.followed_policies import read_policies
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import change_windows, extender_options
from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import source_of
from kube.decoding.decoding import Kind
from placement.disruption_budgets import WATCHED_BUDGETS, DisruptionBudgets
from placement.index.index import INDEXED_KINDS
from placement.policies.policy import OnePolicyForAll, Policies
from rebalancer.plan_maker import PlanMaker, PlanSources
from scorer.scorer import Scorer
from scorer.scoring_policy import scoring_policy

_SYNC_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Planning:
    """A cluster that was read whole, with its model and what its nodes use now. policies: by which pods are placed"""

    scorer: Scorer
    maker: PlanMaker
    placing: Placing
    policies: Policies


@contextmanager
def open_planning(settings: Settings, inputs: Inputs) -> Iterator[Planning]:
    """Follow the cluster of the inputs while the context lasts. Raises InputError, see prepare_scorer."""
    provider = read_policies(settings, inputs.access)
    prepared = prepare_scorer(settings, inputs, policies=provider)
    scorer, placing, budgets = prepared.scorer, Placing(prepared.scorer, settings), DisruptionBudgets()
    if provider is not None:
        provider.read_labels_with(placing.labels_of)
    sources = PlanSources(
        placing.may_go,
        budgets,
        placing.annotations_of,
        excluded=settings.excluded,
        changes=change_windows(settings),
    )
    maker = PlanMaker(scorer.tables, sources, settings.rebalance, settings.hot_share)
    for_all = extender_options(settings).policy(scoring_policy(scorer.options))
    planning = Planning(scorer, maker, placing, OnePolicyForAll(for_all) if provider is None else provider)
    kinds: Collection[Kind] = INDEXED_KINDS

    def look() -> None:
        prepared.background.wait_synced(_SYNC_SECONDS)
        prepared.background.look_for_model()
        scorer.tables.measure()
        scorer.tables.tick()

    if inputs.cluster is not None:

        def read(objects: ClusterObjects) -> None:
            budgets.replace(objects.of(WATCHED_BUDGETS))

        with prepared.following(kinds, on_file=read):
            look()
            yield planning
        return
    watch = source_of(inputs.access.client(), [Subscription(WATCHED_BUDGETS, budgets)])
    with prepared.following(kinds):
        watch.start()
        try:
            watch.wait_synced(_SYNC_SECONDS)
            look()
            yield planning
        finally:
            watch.stop()
