"""What the other tests here stand on: where the programs come from, and that none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.binaries import binary
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from tests.cluster.stored_objects import eventually

_STARTS_AND_DIES = """
import os, pathlib, signal, sys
from testing.servers.control_plane.process import ServerProcess
server = ServerProcess(["sleep", "300"], pathlib.Path(sys.argv[1]))
server.start(lambda: True, 5)
print(server._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kubebuilder_assets_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert binary.__wrapped__("etcd") == tmp_path / "etcd"


def test_without_programs_and_without_go_the_ways_out_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(RuntimeError, match=r"KUBEBUILDER_ASSETS .* install Go"):
        binary.__wrapped__("kube-apiserver")


def test_an_unknown_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("KUBERNETES_VERSION", "1.12")
    with pytest.raises(RuntimeError, match=r"KUBERNETES_VERSION is '1\.12', must be one of 1\.36, 1\.37"):
        binary.__wrapped__("etcd")


def test_a_server_dies_with_the_test_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS_AND_DIES, str(tmp_path / "log")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ended.returncode == -signal.SIGKILL
    pid = int(ended.stdout)
    assert eventually(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    """A process that ended and that nobody waited for does not run."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_planes_stand_side_by_side_and_keep_their_data_over_a_crash(plane: ControlPlane, writer: ClusterWriter) -> None:
    writer.create(node("here"))
    with ControlPlane() as other, ClusterWriter(other) as other_writer:
        other_writer.create(node("there"))
        other.api_server.kill()
        other.api_server.start()
        with ClusterWriter(other) as again:
            assert [item["metadata"]["name"] for item in again.list_all("nodes")] == ["there"]
    assert [item["metadata"]["name"] for item in writer.list_all("nodes")] == ["here"]


def test_a_plane_goes_to_its_next_user_as_empty_as_a_new_one() -> None:
    with control_plane() as first, Api(first) as api, ClusterWriter(first) as writer:
        api.install_crds()
        writer.create_many([node("n"), *(pod(f"p-{i}") for i in range(3))])
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        api.request("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"tier": "gold"}}})
        first.api_server.kill()
    with control_plane() as second, Api(second) as api, ClusterWriter(second) as writer:
        assert second is first
        assert not writer.list_all("nodes") and not writer.list_all("pods") and not api.crds_are_served()
        names = [one["metadata"]["name"] for one in api.request("GET", "/api/v1/namespaces")["items"]]
        assert sorted(names) == ["default", "kube-node-lease", "kube-public", "kube-system"]
        assert "tier" not in api.request("GET", "/api/v1/namespaces/default")["metadata"]["labels"]
        api.install_crds()  # and they are served again
        assert api.crds_are_served()


def test_a_plane_that_lost_its_data_is_thrown_away() -> None:
    with control_plane() as first:
        first.etcd.wipe()
    assert not first.directory.exists()
    with control_plane() as second:
        assert second is not first
