"""What a policy says holds in every profile of `schedule`: weights, filters and the order of pools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from forecast_scheduler.cli import run
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import schedule_policy_defaults
from placement.filters.catalogue import STANDARD_FILTERS
from placement.policies.compiling import compile_document
from placement.policies.document import read_document
from placement.scores.plugin_weights import PLUGIN_WEIGHTS
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_pod
from tests.forecast_scheduler.test_dry_run import by_name
from tests.forecast_scheduler.test_schedule_profiles import NAMES, made

CARD = "nvidia.com/gpu"
POOLS = [{"matchLabels": {"pool": "a"}}, {"matchLabels": {"pool": "b"}}]
ORDER = {"default": "order", "policies": {"order": {"pools": POOLS}}}


def in_pool(name: str, pool: str | None, **amounts: str) -> dict[str, Any]:
    made = made_node(name, **amounts)
    made["metadata"]["labels"] |= {} if pool is None else {"pool": pool}
    return made


def policies(tmp_path: Path, document: dict[str, Any]) -> str:
    path = tmp_path / "policies.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def answer(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    assert run([*arguments, "--json", "-"]) == 0, capfd.readouterr().err
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def waiting(profile: str, count: int, **cards: str) -> list[dict[str, Any]]:
    """Like pods of a profile."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1", **cards}, "limits": cards}}
    return [made_pod(f"pod-{n}", scheduler=NAMES[profile], containers=[container]) for n in range(count)]


@pytest.mark.parametrize("profile", NAMES)
def test_a_pool_is_filled_before_the_next_and_what_is_in_none_comes_last(
    profile: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By requests every score would spread the pods, most of all to the large node of no pool."""
    one, two, eight = ({CARD: count} if profile == "gpu" else {} for count in "128")
    nodes = [
        in_pool("none-0", None, cpu="64", **eight),
        *(in_pool(f"{pool}-{n}", pool, cpu="2", **two) for pool in "ba" for n in range(2)),
    ]
    cluster = cluster_file(tmp_path, *nodes, *waiting(profile, 10, **one))
    options = ["schedule", "--dry-run", "--cluster", str(cluster), "--profile", profile, "--models", str(tmp_path)]
    plain = by_name(answer(capfd, *options))
    ordered = by_name(answer(capfd, *options, "--policies", policies(tmp_path, ORDER)))
    at = [ordered[f"pod-{n}"]["node"] for n in range(10)]
    assert sorted(at) == ["a-0", "a-0", "a-1", "a-1", "b-0", "b-0", "b-1", "b-1", "none-0", "none-0"]
    assert [node[0] for node in at] == ["a"] * 4 + ["b"] * 4 + ["n"] * 2
    assert plain["pod-0"]["node"] == "none-0" != ordered["pod-0"]["node"]


@pytest.mark.parametrize("profile", NAMES)
def test_the_weight_of_a_score_decides_and_zero_drops_it(
    profile: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`explain` shows the weights as they are used."""
    image = {"names": ["app:1"], "sizeBytes": 900 * 2**20}
    small, large = made_node("small", cpu="4"), made_node("large", cpu="64")
    small["status"]["images"] = [image]
    cluster = cluster_file(tmp_path, small, large, *waiting(profile, 1))
    options = ["explain", "shop/pod-0", "--cluster", str(cluster), "--profile", profile, "--models", str(tmp_path)]
    chosen, weights = {}, {}
    for name, given in (
        ("images", {"ImageLocality": 100}),
        ("no images", {"ImageLocality": 0}),
        ("settings", None),
    ):
        document = {"policies": {"a": {"scores": {"plugin_weights": given}}}, "default": "a"} if given else {}
        found = answer(capfd, *options, "--policies", policies(tmp_path, {"policies": {}, **document}))
        chosen[name] = found["judgement"]["node"]
        weights[name] = {part["name"]: part["weight"] for part in found["judgement"]["parts"]}
        for node, total in found["judgement"]["totals"].items():
            assert sum(part["points"][node] for part in found["judgement"]["parts"]) == pytest.approx(total, abs=1e-3)
    assert (chosen["images"], chosen["no images"]) == ("small", "large")
    assert weights["settings"] == PLUGIN_WEIGHTS
    assert weights["images"] == {**weights["settings"], "ImageLocality": 100}
    assert weights["no images"].keys() == weights["settings"].keys() - {"ImageLocality"}


def test_whatever_a_policy_says_of_filters_the_standard_ones_and_those_of_the_profiles_run() -> None:
    """`filters` decides about PredictedPeak, in our loops, and about nothing else."""
    document = read_document(
        "policies: {none: {filters: []}, plain: {}, both: {filters: [PredictedPeak, CardTypes], "
        "highest_peaks: {cpu: 0.9}, cards: {protection: hard}}}"
    )
    by_policy = compile_document(document, schedule_policy_defaults(Settings())).policies
    _, profiles = made(*NAMES)
    for profile in profiles.values():
        none, plain, both = (
            {one.name for one in profile.filters_for(by_policy[name])} for name in ("none", "plain", "both")
        )
        assert none >= {"Domain", "MachineGroup", "CardTypes", *STANDARD_FILTERS}
        assert none == plain, profile.name
        assert both - none == {"PredictedPeak"}
