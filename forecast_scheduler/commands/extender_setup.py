"""An extender put together from settings: its scorer, filters, decision log, events, and binder."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from prometheus_client.registry import Collector

from admission.templates.shaped_pods import ShapedPodsCollector, shaped_pods
from base.errors import InputError
from extender.charge_metrics import ChargeCollector
from extender.extender import Extender
from extender.score_sources import RemoteScores
from forecast_scheduler.commands.decision_recorder import open_recorder
from forecast_scheduler.commands.policy.followed_policies import open_policies
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import extender_options, remote_scorer
from kube.binding.api_server_binder import ApiServerBinder
from kube.binding.binding_steps import Binder
from kube.events.event_recorder import api_server_post
from placement.filters.catalogue import kinds_read
from placement.index.index import INDEXED_KINDS
from placement.node_rule_upkeep import node_rule_upkeep
from placement.plugin_loading import used_plugins
from scorer.background import CapacityEvents, ScorerBackground
from scorer.scorer import Scorer
from serving.threads import running

_CONTROLLER = "forecast-scheduler.io/extender"
_BINDINGS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class LiveExtender:
    """scorer: the one inside, None where scores come from elsewhere; binder: None = /bind is off."""

    extender: Extender
    scorer: Scorer | None
    background: ScorerBackground
    binder: Binder | None
    collectors: tuple[Collector, ...]


@contextmanager
def open_extender(settings: Settings, inputs: Inputs) -> Iterator[LiveExtender]:
    """An extender that follows its cluster while the context lasts; the background is not running yet.

    Raises InputError, see PreparedScorer.
    """
    ours = settings.extender
    options, remote = extender_options(settings), remote_scorer(ours)
    access = inputs.access
    if inputs.cluster is not None and ours.bind:
        raise InputError("--bind needs an API server, --cluster names a file: leave one of them out")
    with ExitStack() as stack:
        tells_pods = inputs.cluster is None and not ours.shadow  # a shadow leaves no traces on pods
        policies = stack.enter_context(open_policies(settings, access, has_api_server=tells_pods))
        provider = None if policies is None else policies.provider
        writes_events = ours.decisions.events and tells_pods
        post = api_server_post(access.client()) if writes_events else None
        recorder, decisions = stack.enter_context(
            open_recorder(ours.decisions, post, controller=_CONTROLLER, is_shadow=options.answers.shadow)
        )
        prepared = prepare_scorer(settings, inputs, predicts=remote is None, policies=provider)
        scorer, scores = prepared.scorer, None if remote is None else RemoteScores(remote)
        extender = Extender(scorer, options, scores=scores, policies=provider, recorder=recorder)
        if provider is not None:
            provider.read_labels_with(extender.labels_of)
        # With policies: whichever filters one names tomorrow.
        stack.enter_context(prepared.following(kinds_read(options.filters) if provider is None else INDEXED_KINDS))
        if post is not None:
            unread = CapacityEvents(scorer, post, controller=_CONTROLLER, instance=socket.gethostname())
            unread.start()
            stack.callback(unread.stop)
        upkeep = node_rule_upkeep(extender.rules, scorer, after=lambda: scorer.tables.synced)
        plans = () if inputs.cluster is not None else (extender.rules.source_of_plans(access.client()),)
        stack.enter_context(running((*plans, *upkeep.threads)))
        binder = ApiServerBinder(access.client(connections=_BINDINGS_AT_ONCE)) if ours.bind else None
        collectors: list[Collector] = [
            decisions,
            ChargeCollector(extender),
            ShapedPodsCollector(scorer, shaped_pods(scorer)),
            scorer.lock_collector(),
            *used_plugins(settings.plugins).collectors(),
            *upkeep.collectors,
        ]
        if policies is not None:
            collectors.append(policies.collector)
        yield LiveExtender(extender, scorer if remote is None else None, prepared.background, binder, tuple(collectors))
