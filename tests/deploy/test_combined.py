"""Overlays join: one is the base, and the parts of others are components beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from testing.servers.kustomize import built, built_from


def _texts(manifests: list[dict[str, Any]]) -> set[str]:
    return {yaml.safe_dump(one) for one in manifests}


@pytest.mark.parametrize(
    ("overlays", "components", "has_all_of"),
    [
        (["observe"], ["webhook"], ["observe", "webhook"]),
        (["observe"], ["extender"], ["extender"]),
        (["extender"], ["own-loops"], ["extender", "own-loops"]),
        (["own-loops"], ["extender"], ["extender", "own-loops"]),
        (["shadow"], ["webhook", "own-loops"], ["shadow", "webhook", "own-loops"]),
        (["gpu"], ["webhook"], ["gpu", "webhook"]),
        (["own-loops"], ["webhook", "advisor"], ["own-loops", "advisor"]),
        (["advisor"], ["rebalancer"], ["advisor", "rebalancer"]),
        (["rebalancer"], ["autoscaler"], ["rebalancer", "autoscaler"]),
        (["observe", "kube-prometheus"], [], ["observe", "kube-prometheus"]),
        (["own-loops", "kube-prometheus"], ["webhook"], ["own-loops", "kube-prometheus", "webhook"]),
        (["webhook", "kube-prometheus"], [], ["webhook", "kube-prometheus"]),
        (["extender", "prometheus-network-policy"], [], ["extender", "prometheus-network-policy"]),
    ],
)
def test_what_is_joined_is_what_each_overlay_installs(
    overlays: Sequence[str], components: Sequence[str], has_all_of: Sequence[str], tmp_path: Path
) -> None:
    joined = built_from(
        tmp_path / "joined",
        resources=[f"overlays/{one}" for one in overlays],
        components=[f"components/{one}" for one in components],
    )
    assert _texts(joined) == set().union(*(_texts(built(f"overlays/{one}")) for one in has_all_of))


def test_small_goes_over_all_that_is_joined(tmp_path: Path) -> None:
    manifests = built_from(
        tmp_path / "small", resources=["overlays/local"], components=["components/webhook", "components/small"]
    )
    assert {one["spec"]["replicas"] for one in manifests if one["kind"] == "Deployment"} == {1}
