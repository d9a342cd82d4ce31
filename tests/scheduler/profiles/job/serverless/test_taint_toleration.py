"""Taints of providers, and other taints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube.objects.objects import Taint
from placement.virtual_nodes.options import ServerlessOptions
from scheduler.cycle.order_dependence import is_asked_once
from scheduler.profiles.job.serverless.taint_toleration import ProviderToleration
from testing.placement.views import passing, view_of
from tests.scheduler.profiles.job.serverless.providers_world import job_pod, provider_node, real_node

NODES = [
    real_node(),
    provider_node("v", "aci"),
    replace(provider_node("evicts"), taints=(Taint("virtual-kubelet.io/provider", "aci", "NoExecute"),)),
    replace(
        provider_node("twice"),
        taints=(Taint("virtual-kubelet.io/provider", "aci", "NoSchedule"), Taint("gpu", "", "NoSchedule")),
    ),
]


@pytest.mark.parametrize(
    ("place", "options", "nodes"),
    [
        ("", ServerlessOptions(), {"real", "v"}),
        ("cluster", ServerlessOptions(), {"real"}),
        ("", ServerlessOptions(tolerate=False), {"real"}),
        ("", ServerlessOptions(taints=("gpu",)), {"real"}),
        ("", ServerlessOptions(taints=("gpu", "virtual-kubelet.io/provider")), {"real", "v", "twice"}),
    ],
)
def test_who_may_leave_tolerates_the_taints_of_providers(
    place: str, options: ServerlessOptions, nodes: set[str]
) -> None:
    tested = ProviderToleration(options)
    assert passing(tested, job_pod("p", place=place), view_of(NODES)) == nodes


def test_it_is_asked_once_for_a_batch() -> None:
    assert is_asked_once([ProviderToleration(ServerlessOptions())], job_pod("p"), view_of(NODES))
