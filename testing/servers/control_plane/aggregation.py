"""kube-apiserver's aggregation layer: the flags that switch it on, and how it finds an API of ours on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from testing.authority import Authority

CLIENT: Final = "front-proxy-client"


def aggregation_flags(directory: Path, authority: Authority) -> Sequence[str]:
    """Flags with which the aggregation layer shows itself by a certificate of this authority. directory: of its files

    https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/#enable-kubernetes-apiserver-flags
    """
    certificate, key = authority.issue(CLIENT)
    return (
        f"--requestheader-client-ca-file={authority.ca}",
        f"--requestheader-allowed-names={CLIENT}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={certificate}",
        f"--proxy-client-key-file={key}",
    )


def service_on_loopback(namespace: str, name: str) -> dict[str, Any]:
    """A Service that leads to this machine: endpoints may not be on loopback, a name may."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def port_of(url: str) -> int:
    """The port of a URL."""
    port = urlsplit(url).port
    assert port is not None, url
    return port
