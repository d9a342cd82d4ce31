"""Puts the profiles of the settings on the tables of the framework: made before the cluster is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from cluster.assuming_cluster import AssumingCluster
from cluster.follower import Follower
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.node_rule_settings import NodeRuleOptions
from placement.plugin_loading import NO_PLUGINS, UsedPlugins
from placement.virtual_node_table import Claims
from profiles.job.due_times import latest_starts
from profiles.job.job_annotations import UnreadTerms, unread_upkeep
from profiles.job.profile import JOB
from profiles.online.colocation_loop import Colocation
from profiles.registry import ProfileHandle, builder
from profiles.schedule_settings import ScheduleSettings
from scheduler.handle import Handle, ProfileParts
from scheduler.process import Process
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue_tables import OwnNodes
from scheduler.scheduling_tables import ScheduleTables, handle_of, loop_tables
from scheduler.shard_tables import ShardLeases
from scorer.scorer import Scorer
from serving.threads import Upkeep


def schedule_tables(
    scorer: Scorer,
    settings: ScheduleSettings,
    rule_options: NodeRuleOptions,
    session: ApiSession | None = None,
    held: ShardLeases | None = None,
    *,
    plugins: UsedPlugins = NO_PLUGINS,
) -> ScheduleTables:
    """Return tables that are attached to those of the scorer, which has not read its cluster yet. Raises InputError.

    session : that claims are written with; None = they are not
    held    : says which nodes are ours; None = all are
    plugins : of other packages; they come last in the list of a profile
    """
    with scorer.tables.reading() as cluster:
        handle = profile_handle(scorer, cluster, settings, rule_options, session)
        profiles = {name: _with_plugins(builder(name)(handle), name, plugins) for name in settings.profiles}
        return loop_tables(handle, profiles, _common_parts(handle), held)


def _with_plugins(parts: ProfileParts, profile: str, plugins: UsedPlugins) -> ProfileParts:
    return replace(
        parts,
        filters=(*parts.filters, *plugins.filters(profile)),
        scores=(*parts.scores, *plugins.scores(profile)),
        pre_bind=(*parts.pre_bind, *plugins.pre_bind(profile)),
        post_bind=(*parts.post_bind, *plugins.post_bind(profile)),
    )


def profile_handle(
    scorer: Scorer,
    cluster: AssumingCluster,
    settings: ScheduleSettings,
    rule_options: NodeRuleOptions,
    session: ApiSession | None = None,
) -> ProfileHandle:
    """Return what profiles are built with, under the lock of the tables. Raises InputError."""
    starts = latest_starts(cluster, settings.job.storm.zone)
    handle = handle_of(
        scorer,
        cluster,
        settings,
        rule_options,
        OwnNodes(frozenset((settings.domain, *settings.share_nodes)), Claims(settings.job.serverless)),
        due_of=starts.due_of,
        job_name=settings.scheduler_names.get(JOB),
        session=session,
    )
    colocation = Colocation(scorer.tables, settings.colocation, after=lambda: scorer.tables.synced)
    shared = {one.name: getattr(handle, one.name) for one in fields(Handle) if one.name != "settings"}
    return ProfileHandle(**shared, settings=settings, colocation=colocation, starts=starts)


def _common_parts(handle: ProfileHandle) -> ProfileParts:
    """Return the gap for pods of low priority, and events about annotations of time wherever there are queues."""
    scorer, colocation, ours = handle.scorer, handle.colocation, frozenset(handle.settings.scheduler_names.values())
    unread = UnreadTerms(handle.cluster.state, lambda pod: pod.scheduler_name in ours)
    followers: tuple[Follower, ...] = () if handle.queues is None else (unread,)

    def upkeep(process: Process, queue: SchedulingQueue) -> Upkeep:
        told = unread_upkeep(unread, scorer, process).threads if followers else ()
        return Upkeep((colocation, *told))

    def listen(changed: Callable[[], None], pod_may_go: Callable[[PodInfo], None]) -> None:
        colocation.listeners.append(changed)

    return ProfileParts(
        filters=(colocation.filter,), followers=followers, listen=listen, upkeep=upkeep, keep_up=colocation.keep_up
    )
