from __future__ import annotations

import json
from pathlib import Path

import pytest

from base.errors import InputError
from kube.client import kubeconfig
from kube.client.cluster_access import CURRENT_CLUSTER, ClusterAccess
from kube.client.kubeconfig import context_names


def written(path: Path, *names: str, current: str = "", port: int = 1) -> Path:
    """A kubeconfig with a context of each name; their servers have the ports from `port` on."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in names],
        "clusters": [
            {"name": name, "cluster": {"server": f"http://127.0.0.1:{port + number}"}}
            for number, name in enumerate(names)
        ],
        "users": [{"name": "me", "user": {"token": "secret"}}],
    }
    path.write_text(json.dumps(config))
    return path


def host(access: ClusterAccess) -> str:
    return str(access.client().configuration.host)


def test_a_context_chooses_the_server_and_else_the_current_one_does(tmp_path: Path) -> None:
    path = written(tmp_path / "config", "east", "west", current="west")
    assert context_names(path) == ("east", "west")
    assert host(ClusterAccess(path, "east")).endswith(":1")
    assert host(ClusterAccess(path)).endswith(":2")


def test_an_unknown_context_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    path = written(tmp_path / "config", "east", "west", current="gone")
    with pytest.raises(InputError, match=r"no context 'north': it has east, west"):
        host(ClusterAccess(path, "north"))
    assert host(ClusterAccess(path, "west")).endswith(":2")  # whatever the current one is
    with pytest.raises(InputError, match="has no context 'north': it has none"):
        host(ClusterAccess(written(tmp_path / "empty"), "north"))


def test_of_several_files_the_first_counts_as_with_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    one = written(tmp_path / "one", "east", current="east")
    two = written(tmp_path / "two", "east", "west", current="west", port=8)
    monkeypatch.setattr(kubeconfig, "KUBE_CONFIG_DEFAULT_LOCATION", f"{tmp_path}/absent:{one}:{two}")
    assert host(CURRENT_CLUSTER).endswith(":1")
    assert host(ClusterAccess(None, "east")).endswith(":1")
    assert host(ClusterAccess(None, "west")).endswith(":9")


def test_a_named_context_is_no_matter_of_the_cluster_that_we_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(kubeconfig, "KUBE_CONFIG_DEFAULT_LOCATION", str(written(tmp_path / "config", "east")))
    assert host(ClusterAccess(None, "east")).endswith(":1")
    assert not ClusterAccess(None, "east").runs_here()
