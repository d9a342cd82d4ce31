"""Taints of providers, and other taints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.framework.cycle.dependence import is_asked_once
from extender.job.serverless.options import ServerlessOptions
from extender.job.serverless.tolerating import ProviderToleration
from scorer.cluster.objects import Taint
from tests.extender.job.serverless.providers_world import job_pod, provider_node, real_node
from tests.extender.views import passing, view_of

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
