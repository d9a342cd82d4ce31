"""What pods need, and which nodes declare it. Upstream: component-helpers/nodedeclaredfeatures/features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube.decoding.decoding import Kind, decode_object
from kube.objects.objects import NodeInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.node_declared_features import NodeDeclaredFeatures
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict, verdicts, view_of

RESTART_ALL = "RestartAllContainersOnContainerExits"
NO = Verdict.no("node(s) didn't match Pod's required features")


def rule(action: str) -> dict[str, Any]:
    return {"name": "main", "image": "", "restartPolicyRules": [{"action": action}]}


def mounting(*options: str) -> dict[str, Any]:
    return {"name": "main", "image": "", "volumeMounts": [{"name": "v", "bindMountOptions": list(options)}]}


NEEDS = [
    pytest.param({"containers": [rule("RestartAllContainers")]}, (RESTART_ALL,), id="a container restarts all"),
    pytest.param({"initContainers": [rule("RestartAllContainers")]}, (RESTART_ALL,), id="an init container does"),
    pytest.param({"containers": [rule("Restart")]}, (), id="another rule"),
    pytest.param(
        {"hostNetwork": True, "hostUsers": False}, ("UserNamespacesHostNetworkSupport",), id="host network, own users"
    ),
    pytest.param({"hostNetwork": True, "hostUsers": True}, (), id="host network and users"),
    pytest.param({"hostNetwork": True}, (), id="host network"),
    pytest.param({"hostUsers": False}, (), id="own users"),
    pytest.param({"containers": [mounting("noexec")]}, ("VolumeBindMountOptions",), id="mount options"),
    pytest.param({"ephemeralContainers": [mounting("noexec")]}, ("VolumeBindMountOptions",), id="of a debugger"),
    pytest.param({"containers": [mounting()]}, (), id="no mount options"),
    pytest.param({}, (), id="nothing"),
]


@pytest.mark.parametrize(("spec", "needed"), NEEDS)
def test_what_a_pod_needs(spec: dict[str, Any], needed: tuple[str, ...]) -> None:
    assert pod_with(spec).needed_features == needed


def test_a_node_has_to_declare_all_of_it() -> None:
    pod = pod_with({"containers": [rule("RestartAllContainers")], "hostNetwork": True, "hostUsers": False})
    both = frozenset(pod.needed_features)
    nodes = [
        replace(node_named("one"), features=frozenset({RESTART_ALL})),
        replace(node_named("both"), features=both | {"AndMore"}),
        node_named("none"),
    ]
    assert verdicts(NodeDeclaredFeatures(), pod, view_of(nodes)) == {"one": NO, "both": PASSES, "none": NO}
    assert verdict(NodeDeclaredFeatures(), pod_with({}), node_named("none")) == PASSES


def test_a_node_that_changes_is_looked_at_again() -> None:
    pod, node = pod_with({"containers": [rule("RestartAllContainers")]}), node_named("n")
    upgraded = replace(node, features=frozenset({RESTART_ALL}))
    view = view_of([node])
    for after, expected in ((upgraded, PASSES), (node, NO)):
        view.index.apply(view.state.put_node(after))
        assert verdicts(NodeDeclaredFeatures(), pod, view)["n"] == expected
    hint = NodeDeclaredFeatures().hint
    assert hint(pod, ClusterEvent(EventKind.NODE_CHANGED, node=upgraded, before=node)) is Hint.QUEUE
    assert hint(pod, ClusterEvent(EventKind.NODE_CHANGED, node=node, before=node)) is Hint.SKIP


def test_what_a_node_declares_is_read() -> None:
    body = b'{"metadata": {"name": "n"}, "status": {"declaredFeatures": ["%s"]}}' % RESTART_ALL.encode()
    node = decode_object(Kind.NODES, body)[0]
    assert isinstance(node, NodeInfo)
    assert node.features == {RESTART_ALL}
