"""A scorer and an index of a cluster from a file, to decide once for the pods that wait there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from extender.filters.filter import ClusterView
from extender.filters.node_resources_fit import NodeResourcesFit
from extender.framework.binding.binding_plugins import BindingPlugins
from extender.framework.dry_run import DryRun
from extender.framework.profile import SchedulingProfile
from extender.gpu.profile import GPU
from extender.index.index import INDEXED_KINDS, PlacementIndex
from extender.job.profile import JOB
from extender.online.colocating import Colocation
from extender.policies.policy import OnePolicy, Policies
from forecast_scheduler.gpu_tables import gpu_tables
from forecast_scheduler.job_tables import job_tables
from forecast_scheduler.live_policies import read_policies
from forecast_scheduler.live_scorer import Inputs, open_scorer
from forecast_scheduler.schedule_options import schedule_policy, schedule_policy_defaults
from forecast_scheduler.schedule_plan import Planned, plan
from forecast_scheduler.schedule_profiles import profiles_of
from forecast_scheduler.schedule_tables import schedule_colocation
from forecast_scheduler.settings import Settings
from scorer.background import Background
from scorer.cluster.decoding import Kind
from scorer.scorer import Scorer

__all__ = ["open_plan"]


@contextmanager
def open_plan(settings: Settings, inputs: Inputs) -> Iterator[tuple[Background, Callable[[], list[Planned]]]]:
    """What decides once for the pods of a cluster from a file; see open_scorer for what is raised."""
    defaults = schedule_policy_defaults(settings)
    provider = read_policies(settings, inputs.kubeconfig, defaults)
    policies: Policies = OnePolicy(schedule_policy(settings)) if provider is None else provider
    ours = settings.schedule
    made: list[tuple[ClusterView, Colocation, Mapping[str, SchedulingProfile]]] = []

    def attach(scorer: Scorer) -> Collection[Kind]:
        with scorer.reading() as cluster:
            index = PlacementIndex(cluster.state)
            scorer.attach(INDEXED_KINDS, index)
            colocation = schedule_colocation(scorer, ours)
            gpus = None
            if GPU in ours.profiles:
                gpus = gpu_tables(scorer, ours, index, gangs=None, colocation=colocation, session=None)
            view = ClusterView(cluster, index) if gpus is None else gpus.view
        jobs = None if JOB not in ours.profiles else job_tables(scorer, ours)
        profiles = profiles_of(
            ours,
            policies,
            lambda profile: BindingPlugins(bind=(DryRun(),)),
            jobs,
            gpus,
            fit=NodeResourcesFit(),
            further_filters=(colocation.filter,),
        )
        made.append((view, colocation, profiles))
        if provider is not None:
            provider.read_labels_with(view.index.namespaces.labels_of)
        return INDEXED_KINDS

    with open_scorer(settings, inputs, attach, policies=provider) as (scorer, background):

        def decide() -> list[Planned]:
            scorer.measure()
            scorer.tick()
            ((view, colocation, profiles),) = made
            colocation.keep_up()
            return plan(scorer, view, profiles, ours)

        yield background, decide
