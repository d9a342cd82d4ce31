"""`canary` from beginning to end: a trial on a recorded evening, its pods on nodes of two pools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from admission.templates.effects import BindingEffect as Effect
from admission.templates.effects import Difference, EffectGroup, GroupEffect
from admission.templates.shaping_annotations import CONTROL_ANNOTATION, TEMPLATES_ANNOTATION, Applied, record_text
from forecast_scheduler.cli import run
from forecast_scheduler.commands.canary.canary_tables import difference_lines, what_if_lines
from forecast_scheduler.commands.canary.trial_for_all import WhatIf, mean_peaks
from forecast_scheduler.commands.live_placing import BestNode
from tests.forecast_scheduler.recorded_evening import MOMENT, Evening, recorded_evening

TEMPLATES = Path(__file__).parents[2] / "templates.yaml"
POOLS = {f"node-{i}": "general" if i < 3 else "fast" for i in range(6)}
RECORD = record_text([Applied("cart-pool", 1, "NodeSchedulerConfig/pool", 1, True)])
Canary = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Evening:
    return recorded_evening(tmp_path_factory.mktemp("evening"))


@pytest.fixture(scope="module")
def trial(evening: Evening) -> Path:
    """The evening with three times the nodes, and six pods of cart in each group."""
    cluster = json.loads(evening.cluster.read_text())
    items = {(one["kind"], one["metadata"]["name"]): one for one in cluster["items"]}
    made = [one for (kind, name), one in items.items() if kind not in ("Node", "Pod") or name.startswith("search")]
    for name, pool in POOLS.items():
        node = json.loads(json.dumps(items["Node", "node-0"]))
        node["metadata"] |= {"name": name, "labels": {"pool": pool, "kubernetes.io/hostname": name}}
        made.append(node)
    for i in range(12):
        pod = json.loads(json.dumps(items["Pod", "cart-0"]))
        is_chosen = i >= 6
        note = {TEMPLATES_ANNOTATION: RECORD} if is_chosen else {CONTROL_ANNOTATION: "cart-pool"}
        labels = {"pod-template-hash": "a3e71294"}
        pod["metadata"] |= {"name": f"cart-{i}", "uid": f"uid-{i}", "annotations": note, "labels": labels}
        pod["spec"]["nodeName"] = f"node-{i % 3 + 3 * is_chosen}"
        made.append(pod)
    path = evening.cluster.with_name("trial.json")
    path.write_text(json.dumps(cluster | {"items": made}))
    return path


@pytest.fixture
def told(evening: Evening, trial: Path, capfd: pytest.CaptureFixture[str]) -> Canary:
    def told(*arguments: object, cluster: Path = trial) -> dict[str, Any]:
        capfd.readouterr()
        given = ["--cluster", cluster, "--at", MOMENT, "--models", evening.models, *arguments]
        assert run(["canary", *map(str, given), "--json", "-"]) == 0, capfd.readouterr().err
        return dict(json.loads(capfd.readouterr().out))

    return told


def test_both_groups_are_compared_and_the_control_group_asked_what_would_be(told: Canary) -> None:
    figures = told()
    (binding,) = figures["bindings"]
    assert binding["binding"] == "cart-pool"
    canary, control = binding["groups"]["canary"], binding["groups"]["control"]
    assert (canary["pods"], canary["nodes"], control["pods"], control["nodes"]) == (6, 3, 6, 3)
    assert 0 < canary["mean_peak"] <= canary["highest_peak"]
    difference = binding["difference"]
    assert difference["mean"] == pytest.approx(canary["mean_peak"] - control["mean_peak"])
    assert difference["low"] <= difference["mean"] <= difference["high"]
    assert "no experiment's proof" in figures["note"]
    assert "what_if" not in figures
    assert told() == figures, "the bootstrap is drawn alike every time"
    figures = told("cart-pool", "--templates", TEMPLATES)
    (service,) = figures["what_if"]["services"]
    assert (service["service"], service["pods"], service["untold"]) == ("shop/Deployment/cart", 6, "")
    assert service["without"]["feasible"] == 6
    assert service["shaped"]["feasible"] == 6, "both pools are allowed, one is preferred"
    assert POOLS[service["shaped"]["node"]] == "fast"
    assert service["shaped"]["peak_share"] > 0 and service["without"]["peak_share"] > 0
    assert figures["what_if"]["mean_peak_with"] == pytest.approx(service["shaped"]["peak_share"])
    assert figures["what_if"]["mean_peak_without"] == pytest.approx(service["without"]["peak_share"])


def test_without_templates_or_trials_it_says_so(
    told: Canary, evening: Evening, capfd: pytest.CaptureFixture[str]
) -> None:
    assert "what_if" not in told("cart-pool")
    assert told(cluster=evening.cluster)["bindings"] == []
    given = ["--cluster", evening.cluster, "--at", MOMENT, "--models", evening.models]
    assert run(["canary", *map(str, given)]) == 0
    assert "no pod that sits on a node records a binding" in capfd.readouterr().out


def test_a_binding_without_pods_is_status_2(evening: Evening, trial: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given = ["--cluster", trial, "--at", MOMENT, "--models", evening.models]
    assert run(["canary", "unheard-of", *map(str, given)]) == 2
    said = capfd.readouterr().err
    assert "binding with pods 'unheard-of' is not known; known are: cart-pool" in said
    assert said.count("\n") == 1


def effect(difference: Difference | None, untold: str = "") -> Effect:
    return Effect("pool", {EffectGroup.CANARY: GroupEffect(9, 3, 0.5, 0.6, 0.0)}, difference, untold)


def test_a_difference_is_only_claimed_where_it_is_clear() -> None:
    (clear,) = difference_lines([effect(Difference(-0.1, -0.15, -0.05))])
    assert "-10.0 points" in clear
    assert "95 % interval -15.0 to -5.0" in clear
    assert "chance" not in clear
    assert "it may as well be chance" in difference_lines([effect(Difference(-0.1, -0.25, 0.05))])[0]
    assert difference_lines([effect(None, "too few pods to tell")]) == ["pool: too few pods to tell"]


def test_means_are_over_pods_of_which_both_peaks_are_known() -> None:
    found = [
        WhatIf("a", 3, BestNode("x", 0.5, 2, ""), BestNode("y", 0.3, 1, "")),
        WhatIf("b", 1, BestNode("x", 0.9, 2, ""), BestNode("x", 0.9, 2, "")),
        WhatIf("c", 9, BestNode("x", 0.9, 2, ""), BestNode(None, None, 0, "0/2 nodes are available")),
        WhatIf("d", 9, None, None, "its pod is gone"),
    ]
    means = mean_peaks(found)
    assert means is not None
    assert means == pytest.approx((0.6, 0.45))
    lines = what_if_lines(found, 2)
    assert "60 % without the template, 45 % with it" in lines[0]
    assert "12 of 22 control pods belong to services that would go elsewhere" in lines[0]
    assert lines[1].startswith("2 services with fewer control pods")
    assert mean_peaks(found[2:]) is None
