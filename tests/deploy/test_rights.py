"""What deploy/ grants is what is used: nothing that is granted is idle, nothing that is asked is refused, and whatever
right is taken away is missed. By the audit log of a real API server, of real processes with their accounts' tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import manifests
from testing.servers.applying import Applier
from testing.servers.audit import Audit, Right
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.kustomize import DEPLOY, built, built_from
from testing.servers.shipped_rights import NAMESPACE
from testing.waiting import eventually
from tests.deploy.parts_at_work import PARTS, SERVES_NATIVE_GROUPS, clear
from tests.deploy.rights import DELEGATED, OF_EVERYBODY, Installed, account_of, granted
from tests.live_cluster.test_node_topologies import DEFINITION as NODE_TOPOLOGIES
from tests.schedule.test_native_gangs import GATES as NATIVE_GROUPS

_STATUS = re.compile(r"(?<=[ (=])403\b")
"""As a line of the log says it: neither the thousandths of a second that it begins with, nor a port."""


_BESIDE = ["crds", "crds/rebalanceplans", "base/extender", "base/webhook", "base/advisor", "base/rebalancer"]
"""All that can be added to an overlay."""


def _manifests(place: Path) -> list[dict[str, Any]]:
    return built_from(place, resources=["overlays/own-loops", *_BESIDE])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    directory = tmp_path_factory.mktemp("rights")
    audit = Audit(directory, [account_of(part) for part in PARTS])
    gates = NATIVE_GROUPS if SERVES_NATIVE_GROUPS else ()
    with ControlPlane(api_server_arguments=(*audit.arguments, *gates)) as plane, Applier(plane) as applier:
        applier.apply(NODE_TOPOLOGIES)  # as an exporter installs it: the loops watch what exists
        yield Installed(plane, applier, audit, _manifests(directory / "all"))


@pytest.fixture
def writer(installed: Installed) -> Iterator[ClusterWriter]:
    """The cluster is empty again afterwards."""
    installed.audit.forget()
    with ClusterWriter(installed.plane) as writer:
        yield writer
        clear(installed, writer)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_uses_what_it_is_granted_and_is_refused_nothing(
    name: str, installed: Installed, writer: ClusterWriter, tmp_path: Path
) -> None:
    part, account = PARTS[name], account_of(name)
    rights = _usable(granted(installed.manifests, name))
    assert rights
    part.prepare(installed, writer)
    with part.process(installed, tmp_path) as process:
        part.work(installed, writer, process)
        eventually(lambda: installed.audit.used(account) >= rights)
        used, refused = installed.audit.used(account), installed.audit.refused(account)
        assert (rights - used, used - rights - OF_EVERYBODY, refused) == (set(), set(), set()), process.log[-3000:]


def test_the_trainer_and_what_only_shows_figures_have_no_rights_at_all(tmp_path: Path) -> None:
    shipped = built_from(tmp_path / "all", resources=["overlays/shadow"], components=["components/pushgateway"])
    assert granted(shipped, "trainer") == granted(shipped, "pushgateway") == set()


def test_in_shadow_mode_the_extender_may_write_no_events() -> None:
    shadow, real = (granted(built(f"overlays/{name}"), "extender") for name in ("shadow", "extender"))
    assert real - shadow == {("create", "events.k8s.io", "events")} and shadow < real


def test_nothing_is_granted_wholesale(tmp_path: Path) -> None:
    for one in built_from(tmp_path / "all", resources=["overlays/gpu", *_BESIDE]):
        if one["kind"] in ("Role", "ClusterRole"):
            named = [
                text
                for rule in one["rules"]
                for key in ("verbs", "resources", "apiGroups")
                for text in rule.get(key, [])
            ]
            assert "*" not in named, one["metadata"]["name"]
            # Whoever reads Secrets reads everybody's: only by name.
            assert all(
                "resourceNames" in rule or rule["verbs"] == ["create"]
                for rule in one["rules"]
                if "secrets" in rule.get("resources", [])
            )
        if one["kind"] in ("Role", "RoleBinding"):
            assert one["metadata"]["namespace"] == NAMESPACE


def _each_right() -> list[tuple[str, Right]]:
    """Those that every API server grants to whoever is bound to a role of its own left out."""
    files = {name: sorted((DEPLOY / "base" / name).glob("rbac*.yaml")) for name in PARTS}
    return [
        (name, right) for name in PARTS for right in sorted(_usable(granted(manifests(*files[name]), name)) - DELEGATED)
    ]


def _usable(rights: set[Right]) -> set[Right]:
    """Without those on native PodGroups, where the API server has none, and on EvictionRequests.

    tests/rebalance/test_eviction_requests.py has the gate of the latter on.
    """
    absent = {"lifecycle.k8s.io"} | (set() if SERVES_NATIVE_GROUPS else {"scheduling.k8s.io"})
    return {right for right in rights if right[1] not in absent}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "right"), _each_right(), ids=lambda one: one if isinstance(one, str) else " ".join(one)
)
def test_a_right_that_is_taken_away_is_missed(
    name: str, right: Right, installed: Installed, writer: ClusterWriter, tmp_path: Path
) -> None:
    """Whoever runs it can see it: in the log, in the figures, or at a pod."""
    part, account = PARTS[name], account_of(name)
    part.prepare(installed, writer)
    process = part.process(installed, tmp_path)
    with installed.without(right, name), closing(process):
        if _starts(process):
            part.work(installed, writer, process)
        assert eventually(lambda: right in installed.audit.refused(account)), process.log[-3000:]
        assert eventually(lambda: _is_told(process, writer)), process.log[-3000:]
        assert installed.audit.refused(account) == {right}


def _starts(process: ScorerProcess) -> bool:
    """Not where the first thing that it needs is refused."""
    try:
        process.start()
    except RuntimeError:
        return False
    return True


def _is_told(process: ScorerProcess, writer: ClusterWriter) -> bool:
    return _is_logged(process) or _is_counted(process) or _is_written(writer)


def _is_logged(process: ScorerProcess) -> bool:
    return any(_STATUS.search(line) for line in process.complaints)


def _is_counted(process: ScorerProcess) -> bool:
    if not process.url.startswith("http:"):  # it did not start, or asks for a certificate that is not known here
        return False
    lines = process.http.get("/metrics").text.splitlines()
    return any('="failed"' in line and not line.endswith(" 0.0") for line in lines)


def _is_written(writer: ClusterWriter) -> bool:
    """As the condition of a pod that waits."""
    told = [one.get("message", "") for pod in writer.list_all("pods") for one in pod["status"].get("conditions", [])]
    return any("403" in message or "forbidden" in message for message in told)
