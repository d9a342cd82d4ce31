from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from base.errors import InputError
from kube.client import kubeconfig
from kube.client.kubernetes_client import UnreachableApiServer, api_client, check_access
from testing.servers.prometheus import free_port


def written(path: Path, **changes: Any) -> Path:
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me"}}],
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
    }
    path.write_text(json.dumps(config | changes))
    return path


def test_outside_a_cluster_it_is_what_kubectl_would_talk_to_or_the_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    written(tmp_path / "config")
    monkeypatch.setattr(kubeconfig, "KUBE_CONFIG_DEFAULT_LOCATION", f"{tmp_path}/absent:{tmp_path}/config")
    assert api_client().configuration.auth_settings()["BearerToken"]["value"] == "Bearer secret"
    (tmp_path / "config").write_text("just text")
    with pytest.raises(InputError, match=r"kubeconfig .*config"):
        api_client()
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(kubeconfig, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"does not run in a Kubernetes cluster .*--kubeconfig.*--cluster"):
        api_client()


@pytest.mark.parametrize(
    "changes",
    [
        {"current-context": ""},
        {"clusters": []},
        {"contexts": "none"},
        {"clusters": [{"name": "test", "cluster": {"server": "https://x", "certificate-authority": "/not/there"}}]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_kubeconfig_that_says_too_little_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"kubeconfig .*config"):
        api_client(written(tmp_path / "config", **changes))


def test_a_kubeconfig_names_the_server_and_who_asks(tmp_path: Path) -> None:
    api = api_client(written(tmp_path / "config"))
    assert api.configuration.host.startswith("http://127.0.0.1:")
    assert api.configuration.auth_settings()["BearerToken"]["value"] == "Bearer secret"
    with pytest.raises(InputError, match=r"there is no kubeconfig .*absent"):
        api_client(tmp_path / "absent")
    api = api_client(written(tmp_path / "config"))
    with pytest.raises(UnreachableApiServer, match="does not answer") as raised:
        check_access(api)
    assert not isinstance(raised.value, InputError)
