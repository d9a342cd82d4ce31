"""What becomes of a held pod when the advisor has all its rights, and when it lacks one of those to write: on a real
API server, with the token of its account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from scorer.degradation import Level
from testing.processes.scorer_process import ScorerProcess, eventually
from testing.servers.applying import Applier
from testing.servers.audit import Audit
from testing.servers.cluster_objects import ClusterWriter, node
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import built
from tests.deploy.parts_at_work import PARTS, advice, gated_pod, is_held, nominated
from tests.deploy.rights import NAMESPACE, Installed, granted

LONG: Final = 60.0
NODES: Final = ("node-1", "node-2")
ADVISOR: Final = PARTS["advisor"]
LEASE: Final = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"namespace": NAMESPACE, "name": "forecast-scheduler-advisor"},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    audit = Audit(tmp_path_factory.mktemp("audit"), [])
    with control_plane() as plane, Applier(plane) as applier:
        yield Installed(plane, applier, audit, built("overlays/advisor"))


@pytest.fixture
def writer(installed: Installed) -> Iterator[ClusterWriter]:
    """A cluster of two nodes, empty again afterwards."""
    with ClusterWriter(installed.plane) as writer:
        writer.create_many(node(name) for name in NODES)
        yield writer
        writer.delete_many(writer.list_all("pods"))
        for one in writer.list_all("nodes"):
            installed.applier.delete(one | {"apiVersion": "v1"})
        installed.applier.delete(LEASE)


def _held_pod(process: ScorerProcess, writer: ClusterWriter) -> str:
    """Returns the name of a new pod that is held; the advisor leads already, and has a forecast."""
    assert eventually(lambda: process.metric("forecast_leader") == 1, LONG), process.log[-3000:]
    assert eventually(lambda: process.metric("forecast_degradation_level") < Level.REQUESTS, LONG), process.log[-3000:]
    writer.create(gated_pod("held"))
    return "held"


def test_of_the_rights_on_pods_the_advisor_writes_with_two() -> None:
    writes = {
        (verb, resource)
        for verb, group, resource in granted(built("overlays/advisor"), "advisor")
        if (group, resource.partition("/")[0]) == ("", "pods") and verb not in ("get", "list", "watch")
    }
    assert writes == {("patch", "pods"), ("patch", "pods/status")}


def test_with_all_its_rights_a_held_pod_is_advised(installed: Installed, writer: ClusterWriter, tmp_path: Path) -> None:
    with ADVISOR.process(installed, tmp_path) as process:
        name = _held_pod(process, writer)
        assert eventually(lambda: not is_held(writer, name), LONG), process.log[-3000:]
        assert nominated(writer, name) in NODES
        assert advice(writer, name)["node"] == nominated(writer, name)


def test_without_the_right_to_nominate_it_is_released_without_advice(
    installed: Installed, writer: ClusterWriter, tmp_path: Path
) -> None:
    with installed.without(("patch", "", "pods/status"), "advisor"), ADVISOR.process(installed, tmp_path) as process:
        name = _held_pod(process, writer)
        assert eventually(lambda: not is_held(writer, name), LONG), process.log[-3000:]
        assert nominated(writer, name) == "" and advice(writer, name)["node"] is None
        assert "403" in advice(writer, name)["because"]
        assert any("no node was nominated (grant patch on pods/status)" in line for line in process.complaints)


def test_without_the_right_to_release_it_stays_held_until_the_right_is_back(
    installed: Installed, writer: ClusterWriter, tmp_path: Path
) -> None:
    with ADVISOR.process(installed, tmp_path) as process:
        assert eventually(lambda: process.metric("forecast_leader") == 1, LONG), process.log[-3000:]
        with installed.without(("patch", "", "pods"), "advisor"):
            name = _held_pod(process, writer)
            told = "our gate was not removed (grant patch on pods)"
            assert eventually(lambda: any(told in line for line in process.complaints), LONG), process.log[-3000:]
            assert is_held(writer, name)
            assert eventually(lambda: process.metric("forecast_leader") == 0, LONG), "the webhook must not hold others"
            assert any("this replica does not lead, and no new pod is held" in line for line in process.complaints)
        assert eventually(lambda: not is_held(writer, name), LONG), process.log[-3000:]
        assert eventually(lambda: process.metric("forecast_leader") == 1, LONG), process.log[-3000:]
