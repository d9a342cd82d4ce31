"""What the process does with the parts of a profile, whichever it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from forecast_scheduler.cli import run
from kube.client.kubernetes_source import ResourceSource
from kube.objects.objects import PodInfo
from placement.node_rule_settings import NodeRuleOptions
from profiles.registry import PROFILES, builder
from profiles.schedule_settings import ScheduleSettings
from profiles.schedule_tables import profile_handle, schedule_tables
from scheduler.handle import Handle, ProfileParts
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_pod, seated
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
        parts = builder("gpu")(profile_handle(live.scorer, cluster, settings, NodeRuleOptions()))
    assert parts.read_again is not None
    source = Source()
    parts.read_again(cast(ResourceSource, source))
    assert source.asked == [{"resourceclaims"}]


def test_victims_of_each_profile_stand_by_its_own_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(standing: int) -> Callable[[Handle], ProfileParts]:
        return lambda handle: ProfileParts(standing=lambda pod: standing)

    both: dict[str, Any] = {**PROFILES, "low": of(-7), "lower": of(-9)}
    monkeypatch.setattr("profiles.registry.PROFILES", both)
    settings = ScheduleSettings.model_validate({"profiles": ["online", "low", "lower"]})
    tables = schedule_tables(LiveScorer(without_model=True).scorer, settings, NodeRuleOptions())

    def standing(scheduler_name: str) -> int:
        one: PodInfo = replace(pod("p"), scheduler_name=scheduler_name, priority=5)
        return tables.sitting.standing_of(one)

    names = ("forecast-scheduler", "low-scheduler", "lower-scheduler", "default-scheduler")
    assert [standing(name) for name in names] == [5, -7, -9, 5]


PAGE = (Path(__file__).parents[2] / "docs" / "extend" / "extend.md").read_text()


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile of the page, registered by the line of the page."""
    section = PAGE.partition("\n## A profile\n")[2]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {}
    exec(code, module)
    assert '`"builds": builds.build`' in PAGE
    monkeypatch.setattr("profiles.registry.PROFILES", {**PROFILES, "builds": module["build"]})


def planned(cluster: Path, capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    models = str(cluster.with_name("no-models"))
    assert run(["schedule", "--dry-run", "--cluster", str(cluster), "--models", models, "--json", "-", *arguments]) == 0
    return {pod["name"]: pod for pod in json.loads(capfd.readouterr().out)["pods"]}


@pytest.mark.usefixtures("builds")
def test_its_filter_and_score_choose_the_node(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pool = [made_node(f"builds-{i}", cpu="64") for i in range(2)]
    for node in pool:
        node["metadata"]["labels"]["pool"] = "builds"
    sitting = [seated(made_pod(f"sits-{i}", cpu="100m"), "builds-0") for i in range(5)]
    waits = made_pod("build", cpu="1", scheduler="builds-scheduler")
    cluster = cluster_file(tmp_path, *pool, made_node("other", cpu="64"), *sitting, waits)
    assert planned(cluster, capfd, "--profile", "builds")["build"]["node"] == "builds-1"
    without = cluster_file(tmp_path, made_node("other", cpu="64"), waits)
    assert (
        "node(s) were not in the pool of builds"
        in planned(without, capfd, "--profile", "online,builds")["build"]["message"]
    )
