"""What the process does with the parts of a profile, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, cast

import pytest

from kube.client.kubernetes_source import ResourceSource
from kube.objects.objects import PodInfo
from placement.node_rule_options import NodeRuleOptions
from scheduler.handle import Handle, ProfileParts
from scheduler.profiles.registry import PROFILES, builder
from scheduler.settings import ScheduleSettings
from scheduler.tables import handle_of, schedule_tables
from tests.kube.api_objects import pod
from tests.scorer.scorer_at import LiveScorer


class Source:
    """Remembers which resources are listed again."""

    def __init__(self) -> None:
        self.asked: list[Collection[str]] = []

    def list_again(self, plurals: Collection[str]) -> Callable[[], bool]:
        self.asked.append(plurals)
        return lambda: True


def test_a_new_leader_reads_claims_anew_with_the_source_that_follows_them() -> None:
    live = LiveScorer(without_model=True)
    settings = ScheduleSettings.model_validate({"profiles": ["gpu"]})
    with live.scorer.tables.reading() as cluster:
        parts = builder("gpu")(handle_of(live.scorer, cluster, settings, NodeRuleOptions()))
    assert parts.read_again is not None
    assert parts.read_again()(), "without a source there is nothing to read"
    source = Source()
    parts.on_source(cast(ResourceSource, source))
    parts.read_again()
    assert source.asked == [{"resourceclaims"}]


def test_victims_of_each_profile_stand_by_its_own_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(standing: int) -> Callable[[Handle], ProfileParts]:
        return lambda handle: ProfileParts(standing=lambda pod: standing)

    both: dict[str, Any] = {**PROFILES, "low": of(-7), "lower": of(-9)}
    monkeypatch.setattr("scheduler.profiles.registry.PROFILES", both)
    settings = ScheduleSettings.model_validate({"profiles": ["online", "low", "lower"]})
    tables = schedule_tables(LiveScorer(without_model=True).scorer, settings, NodeRuleOptions())

    def standing(scheduler_name: str) -> int:
        one: PodInfo = replace(pod("p"), scheduler_name=scheduler_name, priority=5)
        return tables.sitting.standing_of(one)

    names = ("forecast-scheduler", "low-scheduler", "lower-scheduler", "default-scheduler")
    assert [standing(name) for name in names] == [5, -7, -9, 5]
