"""The scheduling loops over a cluster from a file, to decide once about the pods that wait there: `schedule --dry-run
--cluster`; and the tenants of such a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import msgspec
from kubernetes.client import ApiClient

from base.errors import InputError
from cluster.file_session import FileSession
from cluster.tables.cluster_file import ClusterObjects
from forecast_scheduler.commands.policy.followed_policies import read_policies
from forecast_scheduler.commands.schedule.dry_run_gaps import (
    Gap,
    gaps_of_policies,
    gaps_of_scores,
    gaps_of_tables,
    other_waiting_pods,
)
from forecast_scheduler.commands.schedule.dry_run_tables import DryRunPlan
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, check_inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import schedule_policy, schedule_policy_defaults
from kube.client.kubernetes_source import ResourceSource, source_of
from kube.decoding.decoding import Kind
from kube.session.api_session import ApiSession
from placement.index.index import INDEXED_KINDS
from placement.plugin_loading import used_plugins
from placement.policies.policy import OnePolicyForAll, Policies
from placement.policies.provider import PolicyProvider
from profiles.dry_loop import DryLoop
from profiles.schedule_tables import schedule_tables
from scorer.background import ScorerBackground
from scorer.scorer import Scorer
from tenants.tenant_report import live_report
from tenants.tenant_routes import tenants_answer

_PATIENCE_SECONDS: Final = 10.0


class DryWorld:
    """A dry loop, and what it goes by. `loop` is there once the tables are attached."""

    def __init__(self, settings: Settings, provider: PolicyProvider | None, session: FileSession | ApiSession) -> None:
        self.settings, self.provider, self._session = settings.schedule, provider, session
        self._rules, self._plugins = settings.node_rules, used_plugins(settings.plugins)
        self.objects: ClusterObjects | None = None
        self._source: ResourceSource | None = None
        self._policies: Policies = OnePolicyForAll(schedule_policy(settings)) if provider is None else provider
        self._loop: DryLoop | None = None

    def attach(self, scorer: Scorer) -> Collection[Kind]:
        """The tables and the loop, before the first object comes."""
        tables = schedule_tables(scorer, self.settings, self._rules, plugins=self._plugins)
        self._loop = DryLoop(self.settings, scorer, tables, self._policies, self._session)
        if self.provider is not None:
            self.provider.read_labels_with(tables.view.index.namespaces.labels_of)
        return INDEXED_KINDS

    def read(self, objects: ClusterObjects) -> None:
        """Further objects of a cluster file into the tables that watch such. Raises UndecodableObject."""
        self.objects = objects
        if isinstance(self._session, FileSession):
            self._session.objects = objects
        for one in self.loop.tables.subscriptions():
            one.sink.replace(objects.of(one.watched))

    def follow(self, api: ApiClient) -> ResourceSource:
        """Further objects of an API server into the same tables; the source is started."""
        self._source = source_of(api, self.loop.tables.subscriptions())
        self._source.start()
        return self._source

    def not_listed(self) -> Iterator[Gap]:
        """Resources that the API server has not listed within some seconds."""
        if self._source is None or self._source.wait_synced(_PATIENCE_SECONDS):
            return
        for name, status in self._source.statuses().items():
            if not status.synced:
                yield Gap(name, f"they could not be listed: {status.last_error or 'no answer yet'}")

    @property
    def loop(self) -> DryLoop:
        """The loop over these tables."""
        assert self._loop is not None
        return self._loop

    @property
    def policies(self) -> Policies:
        """Which pod is placed how."""
        return self._policies


@contextmanager
def open_dry_loop(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, ScorerBackground, DryWorld]]:
    """The loops of the settings over a cluster that they write nothing to; see prepare_scorer for what is raised."""
    provider = read_policies(settings, inputs.access, schedule_policy_defaults(settings))
    with ExitStack() as stack:
        api = None if inputs.cluster is not None else inputs.access.client()
        session = FileSession() if api is None else ApiSession(api, may_write=lambda: False)
        if isinstance(session, ApiSession):
            session.start()
            stack.callback(session.stop)
        world = DryWorld(settings, provider, session)
        prepared = prepare_scorer(settings, inputs, policies=provider)
        scorer = prepared.scorer
        stack.enter_context(prepared.following(world.attach(scorer), on_file=world.read))
        if api is not None:
            stack.callback(world.follow(api).stop)
        yield scorer, prepared.background, world


@contextmanager
def open_plan(settings: Settings, inputs: Inputs) -> Iterator[tuple[ScorerBackground, Callable[[], DryRunPlan]]]:
    """What decides once for the pods of a cluster from a file; see prepare_scorer for what is raised."""
    with open_dry_loop(settings, inputs) as (scorer, background, world):

        def decide() -> DryRunPlan:
            scorer.tables.measure()
            scorer.tables.tick()
            world.loop.look_around()
            with scorer.tables.reading() as cluster:
                pods = list(cluster.state.pods.values())
            planned = world.loop.run()
            objects, tables = world.objects, world.loop.tables
            assert objects is not None
            namespaces = sorted({one.pod.namespace for one in planned})
            unread = () if world.provider is None else world.provider.unread(namespaces)
            return DryRunPlan(
                planned=tuple(planned),
                storms=world.loop.storms(),
                tide=world.loop.tide(),
                stacks=world.loop.water(one.pod for one in planned),
                gaps=(
                    *gaps_of_scores(scorer),
                    *gaps_of_policies((one.pod for one in planned), world.provider),
                    *gaps_of_tables(planned, objects, tables, unread),
                    *other_waiting_pods(pods, world.loop.profiles),
                ),
                unread=objects.unread(one.watched for one in tables.subscriptions()),
                remarks=objects.remarks,
            )

        yield background, decide


def tenants_of_file(settings: Settings, inputs: Inputs, *, hours: int, namespace: str | None) -> dict[str, Any]:
    """Return what /v1/tenants of a `schedule` process would answer. Raises InputError."""
    check_inputs(inputs)
    with open_dry_loop(settings, inputs) as (scorer, background, world):
        background.look_for_model()
        scorer.tables.tick()
        tenants = world.loop.tables.tenants
        if tenants is None:
            raise InputError("quotas are not heeded: set tenants.enabled to true")
        if tenants.need is not None:
            tenants.need.refresh()
        report = live_report(scorer.tables, tenants.quotas, tenants.need, n_hours=hours)
    found: dict[str, Any] = msgspec.to_builtins(tenants_answer(report, namespace))
    return found
