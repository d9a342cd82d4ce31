"""The profiles as the process has them: like pods go in batches through all of their filters, and whatever keeps a pod
from a node says what may change that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.feature_options import schedule_policy
from kube.decoding.decoding import Kind
from placement.cluster_events import EventKind
from placement.policies.policy import OnePolicyForAll
from profiles.schedule_tables import schedule_tables
from scheduler.assembly import assembled_profiles
from scheduler.binding.bind_plugins import DryRun
from scheduler.profile import SchedulingProfile
from scheduler.scheduling_tables import ScheduleTables
from scorer.scorer import Scorer
from tests.kube.api_objects import node, pod

NAMES = {"online": "forecast-scheduler", "gpu": "gpu-scheduler", "job": "job-scheduler"}


def made(*profiles: str) -> tuple[ScheduleTables, Mapping[str, SchedulingProfile]]:
    settings = with_options(Settings(), {"schedule": {"profiles": list(profiles), "domain": ""}})
    scorer = Scorer(clock=lambda: 1_700_000_000.0)
    tables = schedule_tables(scorer, settings.schedule, settings.node_rules)
    scorer.tables.replace(Kind.NODES, [node("a"), node("b")])
    assert tables.gangs is not None
    policies = OnePolicyForAll(schedule_policy(settings))
    return tables, assembled_profiles(settings.schedule, policies, tables, DryRun(), clock=scorer.tables.clock)


@pytest.mark.parametrize("profiles", [["online"], ["job"], ["gpu"], ["online", "gpu", "job"]])
def test_plain_pods_go_in_batches_whatever_runs_beside_their_profile(profiles: list[str]) -> None:
    tables, by_name = made(*profiles)
    assert by_name.keys() == {NAMES[profile] for profile in profiles}
    for name, profile in by_name.items():
        plain = replace(pod("plain"), scheduler_name=name)
        filters = profile.filters_of(plain)
        one_by_one = [one.name for one in filters if not one.ignores_like_pods(plain, tables.view)]
        assert one_by_one == [], f"{name}: like pods are looked at one by one because of these"


def test_pods_that_a_filter_rejects_are_woken_by_what_it_says() -> None:
    """A filter that says nothing wakes its pods by everything, all the time."""
    _, by_name = made("online", "gpu", "job")
    for name, profile in by_name.items():
        plain = replace(pod("plain"), scheduler_name=name)
        asked, filters = profile.hints_of(plain), profile.filters_of(plain)
        assert asked.keys() == {one.name for one in (*filters, *profile.post_filters)}, "those of the policy, too"
        assert [one.name for one in asked.values() if one.woken_by == frozenset(EventKind)] == [], profile.name
