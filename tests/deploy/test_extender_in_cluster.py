"""kube-scheduler asks an extender in the cluster as docs/operate/deployment.md sets both up: the certificates, the
shipped settings and the shipped configuration, an address without a name, and mutual TLS."""

from __future__ import annotations

import re
import ssl
import subprocess
from pathlib import Path
from typing import Final

import httpx
import yaml

from testing.processes.scorer_process import ScorerProcess, settings_of
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import DEPLOY
from testing.waiting import eventually

PAGE: Final = (DEPLOY.parent / "docs" / "operate" / "deployment.md").read_text()
NAMES: Final = {"ca.crt": "ca.crt", "tls.crt": "kube-scheduler.crt", "tls.key": "kube-scheduler.key"}
"""In the configuration, and as the page makes them."""


def _certificates(directory: Path) -> None:
    """By the commands of the page, as they stand there."""
    [block] = [one for one in re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL) if "$ openssl req" in one]
    script = re.sub(r"^\$ ", "", block, flags=re.MULTILINE)
    subprocess.run(["sh", "-ec", script], cwd=directory, check=True, capture_output=True)


def test_it_is_asked_by_whoever_has_a_certificate_and_by_nobody_else(tmp_path: Path) -> None:
    _certificates(tmp_path)
    shipped = yaml.safe_load((DEPLOY / "base" / "common" / "settings.yaml").read_text())
    made = {"tls_cert": "extender.crt", "tls_key": "extender.key", "client_ca": "ca.crt"}
    shipped["extender"]["serving"] |= {key: str(tmp_path / file) for key, file in made.items()}
    settings = settings_of() | {part: shipped[part] for part in ("serving", "extender")}
    with control_plane() as plane, ClusterWriter(plane) as writer:
        writer.create_many(node(f"node-{number}") for number in range(2))
        beside = ScorerProcess(
            tmp_path / "extender", "--kubeconfig", plane.kubeconfig, settings=settings, ready=False, command="extender"
        )
        with beside as extender:
            configuration = yaml.safe_load((DEPLOY / "kube-scheduler" / "extender-in-cluster.yaml").read_text())
            [entry] = configuration["extenders"]
            address = f"https://127.0.0.1:{extender.url.rpartition(':')[2]}"
            assert entry["urlPrefix"] == "https://CLUSTER-IP:8888"
            entry["urlPrefix"], entry["httpTimeout"] = (
                address,
                "10s",
            )  # a busy machine must not look like a slow extender
            checked = entry["tlsConfig"]["serverName"]
            for key in ("caFile", "certFile", "keyFile"):
                entry["tlsConfig"][key] = str(tmp_path / NAMES[Path(entry["tlsConfig"][key]).name])
            configuration["clientConnection"]["kubeconfig"] = str(plane.kubeconfig)

            def metrics(client: str) -> str:
                tls = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
                if client:
                    tls.load_cert_chain(tmp_path / f"{client}.crt", tmp_path / f"{client}.key")
                with httpx.Client(verify=tls, timeout=20) as http:
                    answer = http.get(f"{address}/metrics", extensions={"sni_hostname": checked})
                return answer.raise_for_status().text

            assert eventually(lambda: "forecast_ready 1.0" in metrics("prometheus")), extender.log
            with KubeScheduler(plane, settings=configuration):
                writer.create(pod("asked-about"))
                placed = eventually(lambda: bool(writer.list_all("pods")[0]["spec"].get("nodeName")))
            assert placed, extender.log
            asked = re.findall(
                r'^forecast_extender_requests_total\{.*verb="(\w+)".*\} 1\.0$', metrics("prometheus"), re.M
            )
            assert set(asked) >= {"filter", "prioritize"}
            try:
                metrics("")
            except httpx.HTTPError:
                pass  # TLS 1.3: the alert comes with the first read
            else:
                raise AssertionError("who shows no certificate was let in")
