"""What people read of a pod that waits for its quota: one sentence, without a count of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecast_scheduler.cli import run
from placement.feasibility import FilterVerdict
from placement.filters.filter import Rejection
from tests.forecast_scheduler.made_cluster import cluster_file, made_node, made_object, made_pod, seated
from tests.placement.small_cluster import node_of, view_of
from tests.tenants.tenant_world import TenantWorld, gang_of, nodes, quota, tenant_pod

QUOTA_API = "scheduling.x-k8s.io/v1alpha1"


def test_a_pod_beyond_its_max_reads_one_sentence() -> None:
    world = TenantWorld(nodes(3), [quota("a", 1, 2), quota("b", 8)], [tenant_pod("p", "a", cpu=3)])
    found = world.run()["p"]
    assert found.message == "tenant a may use 2 cores at most and uses 0 cores, the pod asks for 3 cores"
    assert "ElasticQuota" in found.rejected_by


def test_a_gang_reads_the_sentence_of_the_first_member_that_lacks() -> None:
    members = [tenant_pod(f"m{number}", "a", cpu=1, gang="g") for number in range(3)]
    world = TenantWorld(nodes(3), [quota("a", 1, 2), quota("b", 8)], members, groups=[gang_of("a", "g", 3)])
    message = world.run()["m0"].message
    assert "placed as a whole or not at all" in message
    assert "tenant a may use 2 cores at most and uses 2 cores, the pod asks for 1 core" in message
    assert "0/3 nodes are available: 3 tenant" not in message


@pytest.mark.parametrize(
    ("about_pod", "rejected", "text"),
    [
        (True, [True, True], "tenant a has none left"),
        (True, [True, False], "1/2 nodes are available: 1 tenant a has none left"),
        (False, [True, True], "0/2 nodes are available: 2 tenant a has none left"),
    ],
)
def test_a_sentence_stands_alone_only_if_it_is_about_the_pod_and_all_nodes(
    about_pod: bool, rejected: list[bool], text: str
) -> None:
    view = view_of([node_of("n0"), node_of("n1")], [])
    mask = np.zeros(view.n_rows, dtype=bool)
    mask[:2] = rejected
    rejection = Rejection(mask, "tenant a has none left", True, about_pod=about_pod)
    assert str(FilterVerdict(view.state.alive & ~mask, (("ElasticQuota", rejection),)).feasibility(view)) == text


def elastic_quota(namespace: str, least: str, most: str) -> dict[str, Any]:
    spec = {"min": {"cpu": least}, "max": {"cpu": most}}
    return made_object("ElasticQuota", namespace, QUOTA_API, metadata={"namespace": namespace}, spec=spec)


def test_explain_says_the_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = cluster_file(
        tmp_path,
        made_node("n0", cpu="16"),
        elastic_quota("shop", "2", "4"),
        seated(made_pod("there", cpu="3"), "n0"),
        made_pod("next", cpu="2"),
    )
    capfd.readouterr()
    assert run(["explain", "shop/next", "--cluster", str(file), "--models", str(tmp_path / "none"), "--json", "-"]) == 0
    judgement = json.loads(capfd.readouterr().out)["judgement"]
    assert judgement["held"] == "tenant shop may use 4 cores at most and uses 3 cores, the pod asks for 2 cores"
    assert [one["filter"] for one in judgement["rejections"]] == ["ElasticQuota"]
