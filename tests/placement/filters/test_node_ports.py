"""Tables of framework/plugins/nodeports/node_ports_test.go and of HostPortInfo's own test."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.objects import PodInfo
from placement.filters.node_ports import NodePorts
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict

TAKEN = Verdict.no("node(s) didn't have free ports for the requested pod ports", preemptible=True)


def pod_on_ports(*ports: str, name: str = "p", node: str = "") -> PodInfo:
    """ports: as in TCP/127.0.0.1/8080"""
    return pod_with({"containers": [container(*ports)]}, name=name, node=node)


def container(*ports: str) -> dict[str, Any]:
    split = [port.split("/") for port in ports]
    return {"name": "c", "ports": [{"protocol": p, "hostIP": ip, "hostPort": int(port)} for p, ip, port in split]}


@pytest.mark.parametrize(
    ("wanted", "in_use", "expected"),
    [
        pytest.param([], [], PASSES, id="no ports"),
        pytest.param(["UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/9090"], PASSES, id="other port"),
        pytest.param(["TCP/127.0.0.1/8080"], ["TCP/127.0.0.1/8080"], TAKEN, id="same tcp port"),
        pytest.param(["TCP/127.0.0.1/8080"], ["TCP/127.0.0.2/8080"], PASSES, id="different host ip"),
        pytest.param(["UDP/127.0.0.1/8080"], ["TCP/127.0.0.1/8080"], PASSES, id="different protocol"),
        pytest.param(
            ["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8080"],
            ["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8081"],
            TAKEN,
            id="first tcp port conflict",
        ),
        pytest.param(["TCP/0.0.0.0/8001"], ["TCP/127.0.0.1/8001"], TAKEN, id="wants every address"),
        pytest.param(["TCP/127.0.0.1/8001"], ["TCP/0.0.0.0/8001"], TAKEN, id="every address is in use"),
        pytest.param(["TCP//8001"], ["TCP/127.0.0.1/8001"], TAKEN, id="no address is every address"),
    ],
)
def test_upstream(wanted: list[str], in_use: list[str], expected: Verdict) -> None:
    other = pod_on_ports(*in_use, name="other", node="n")

    assert verdict(NodePorts(), pod_on_ports(*wanted), node_named("n"), [other]) == expected


@pytest.mark.parametrize(("is_sidecar", "expected"), [(False, PASSES), (True, TAKEN)])
def test_init_containers_take_ports_only_if_they_stay(is_sidecar: bool, expected: Verdict) -> None:
    init = container("TCP//8001") | ({"restartPolicy": "Always"} if is_sidecar else {})
    other = pod_on_ports("TCP/0.0.0.0/8001", name="other", node="n")

    assert verdict(NodePorts(), pod_with({"initContainers": [init]}), node_named("n"), [other]) == expected
