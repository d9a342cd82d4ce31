"""What the scheduling cycle of the loops decides about one pod of a cluster file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from forecast_scheduler.commands.policy.follow_policies import read_policies
from forecast_scheduler.commands.scorer.setup import Inputs, prepare_scorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.schedule_options import schedule_policy, schedule_policy_defaults
from placement.index.index import INDEXED_KINDS
from placement.policies.policy import OnePolicy
from scheduler.assembly import assembled_profiles
from scheduler.cycle.placing import Placer
from scheduler.dry_run import DryRun
from scheduler.placing_core import placing_core
from scheduler.queue.queued import Popped, QueuedPod
from scheduler.tables import schedule_tables


def decision_of_cycle(
    cluster: Path, models: Path, moment: datetime | None, settings: Settings, name: str
) -> tuple[str | None, float | None]:
    """The node of the pod shop/`name`, popped alone, and the predicted peak there as a share of capacity."""
    provider = read_policies(settings, None, schedule_policy_defaults(settings))
    policies = provider or OnePolicy(schedule_policy(settings))
    inputs = Inputs(cluster, models=str(models), at=moment)
    prepared = prepare_scorer(settings, inputs, policies=provider)
    scorer = prepared.scorer
    tables = schedule_tables(scorer, settings.schedule, settings.node_rules)
    profiles = assembled_profiles(settings.schedule, policies, tables, DryRun(), clock=scorer.tables.clock)
    core = placing_core(scorer, tables, profiles, settings.schedule, clock=scorer.tables.clock)
    with prepared.following(INDEXED_KINDS):
        prepared.background.look_for_model()
        scorer.tables.tick()
        tables.colocation.keep_up()
        with scorer.tables.changing() as cluster_tables:
            level = scorer.tables.level()[0]
            placer = Placer(tables.view, cluster_tables, level, until=cluster_tables.now + 60)
            cycle = core.cycle(cluster_tables, preempt=lambda seats: False, withdraw=lambda pod: None)
            pod = scorer.find_pod("shop", name)
            decisions = cycle.run(Popped("unit", False, (QueuedPod(pod, "unit", 0.0),)), placer)
        node = decisions.placed[0][1] if decisions.placed else None
        return node, None if node is None else scorer.peak_share(pod, node)
