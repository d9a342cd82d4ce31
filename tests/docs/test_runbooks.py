"""Every command of the runbooks, typed as the pages have it against one live cluster, and what it answers.

docs/operate/alerts.md first, then EMERGENCY.md, whose last section switches everything off. The commands come from the
pages. A command that no entry of `_SAYS` knows has to end with 0 all the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pytest
import yaml

from placement.gate_exemptions import ADVICE
from testing.local_cluster.running import LocalCluster, Ports
from testing.servers.kubectl.binary import kubectl
from testing.waiting import eventually
from tests.docs.pages import ROOT, blocks, commands, text_of

pytestmark = pytest.mark.long

_PATIENCE_SECONDS: Final = 600
_HELD: Final = "checkout-advised"  # behind our gate
_PARTS: Final = {
    "scorer": "SCORER",
    "schedule --profile online,job,gpu": "SCHEDULER",
    "rebalance": "REBALANCER",
}

_SAMPLES: Final = {
    "worker-1": "small-01",
    "shop/cart-7d9c5b6f4-x2x7p": f"shop/{_HELD}",
    "NAMESPACE/POD": f"shop/{_HELD}",
    "NAMESPACE": "shop",
    "NODE": "small-01",
    "--scorer kubernetes": '--scorer "$SCORER"',  # the API server proxies to no loopback address
}
"""What stands for names on the pages."""

_NOT_HERE: Final = re.compile(r"^kubectl .*\b(logs|port-forward|exec)\b|^forecast-scheduler relieve .*--apply")
"""What needs a real kubelet, or a controller that makes an evicted pod anew."""

_SAYS: Final = {
    "forecast-scheduler status": r"degraded: (.|\n)*do first: ",  # no kubelet runs the Deployments
    'curl -s "$SCORER/v1/status"': r'"ready":true.*"level":',
    'curl -s "$SCORER/v1/self-check"': r"\{",
    'curl -s "$SCORER/v1/services"': r'"checkout"',
    'curl -s "$SCHEDULER/v1/status"': r'"loop_age_seconds":\d.*|"bindings_in_flight":0',
    'curl -s "$SCHEDULER/v1/queue': r'"pods":\[.*"total":\d',
    'curl -s "$REBALANCER/v1/rebalance"': r'"because":.*"trouble":|"trouble":.*"because":',
    "forecast-scheduler nodes": r"of 50 nodes, expected peaks of the next 24 h",
    "forecast-scheduler node small-01": r"small-01, the next 24 h(.|\n)*What makes the peak(.|\n)*What helps",
    "forecast-scheduler relieve small-01": r"kubectl uncordon small-01",
    "forecast-scheduler models list": r"\d{8}T\d+Z-[0-9a-f]+",
    f"forecast-scheduler explain shop/{_HELD}": (
        r"state of shop/checkout-advised: held for advice for (.|\n)*\$ kubectl -n shop patch pod (.|\n)*best first"
    ),
    "forecast-scheduler advise --release": r"\d+ pod\(s\) released from forecast-scheduler.io/advice",
    "forecast-scheduler autoscale --release": r"\w",
    "forecast-scheduler policy check": r"\w",
    "forecast-scheduler tide": r"\w",
    "forecast-scheduler jobs": r"\w",
    "forecast-scheduler tenants": r"\w",
    "kubectl get pods -A --field-selector spec.nodeName=": r"shop +\S+ +0/1 +SchedulingGated|No resources found",
    "kubectl -n forecast-scheduler get lease forecast-scheduler": r"holderIdentity: \S",
    "kubectl -n forecast-scheduler create job train-now": r"job.batch/train-now created",
    "kubectl label --overwrite namespace shop": r"namespace/shop (not )?labeled",
    "kubectl -n forecast-scheduler set env": r"deployment.apps/forecast-scheduler-extender env updated",
    "kubectl -n forecast-scheduler scale": r"deployment.apps/forecast-scheduler-\w+ scaled",
    "kubectl delete mutatingwebhookconfiguration": r'"forecast-scheduler" deleted',
    "kubectl apply --server-side --force-conflicts -k our-cluster": r"deployment.apps/\S+ serverside-applied",
}
"""What matters of the answer, by how a command begins."""

_DEGRADED: Final = {"forecast-scheduler status": 1}
"""Exit statuses other than 0 that the pages promise."""


@dataclass(frozen=True, slots=True)
class Shell:
    """A directory with what the pages speak of, and the environment of env.sh."""

    directory: Path
    environment: Mapping[str, str]

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Both streams together in stdout, as a person sees them."""
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line], cwd=self.directory, env=dict(self.environment), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_PATIENCE_SECONDS,
        )  # fmt: skip

    def must(self, line: str) -> None:
        """Run what comes before the runbooks."""
        done = self.run(line)
        assert done.returncode == 0, f"{line}: {done.stdout[-2000:]}"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    directory = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(directory, days=7, ports=Ports().free()))
        path = f"{Path(sys.executable).parent}:{kubectl().parent}:{os.environ['PATH']}"
        made = os.environ | cluster.environment | {"PATH": path, "FORECAST_SCHEDULER_REBALANCE__MODE": "shadow"}
        shell = Shell(directory, made)
        _leave_what_pages_name(directory)
        shell.must("kubectl apply --server-side -k our-cluster")
        shell.must('forecast-scheduler train --prometheus "$PROMETHEUS" --history history')
        shell.must("kubectl create -f advised.yaml")
        for command, address in _PARTS.items():
            stack.enter_context(_running(shell, command))
            url = f"{made[address]}/readyz"
            assert eventually(partial(_answers, url), _PATIENCE_SECONDS), command
        yield shell


def _leave_what_pages_name(directory: Path) -> None:
    """Manifests beside the clone, and a policy."""
    (directory / "deploy").symlink_to(ROOT / "deploy")
    (directory / "our-cluster").mkdir()
    kustomization = {"resources": ["../deploy/overlays/extender"], "components": ["../deploy/components/pushgateway"]}
    (directory / "our-cluster" / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    policies = {"policies": {"even": {"scores": {"weights": {"predicted_peak": 1}}}}, "default": "even"}
    (directory / "policies.yaml").write_text(yaml.safe_dump(policies))


class _running(ExitStack):  # noqa: N801 - used as a context manager
    """A service in the background, ended with the cluster."""

    def __init__(self, shell: Shell, command: str) -> None:
        super().__init__()
        log = self.enter_context((shell.directory / f"{command.split()[0]}.log").open("w"))
        process = subprocess.Popen(
            ["forecast-scheduler", *command.split()], cwd=shell.directory, env=dict(shell.environment),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            executable=str(Path(sys.executable).parent / "forecast-scheduler"),
        )  # fmt: skip
        self.callback(process.wait, 60)
        self.callback(process.terminate)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


def typed(page: str) -> list[str]:
    """Return the command lines of a page, with names of this cluster."""
    lines = []
    for block in blocks(text_of(ROOT / page)):
        for line in commands(block) if block.language == "console" else ():
            for name, sample in _SAMPLES.items():
                line = re.sub(rf"(?<![\w/-]){re.escape(name)}(?![\w-])", sample, line)
            if not _NOT_HERE.search(line):
                lines.append(line)
    return lines


def test_every_entry_is_about_a_command_of_the_pages() -> None:
    lines = [*typed("docs/operate/alerts.md"), *typed("EMERGENCY.md")]
    assert not [begin for begin in _SAYS if not any(line.startswith(begin) for line in lines)]


@pytest.mark.parametrize("page", ["docs/operate/alerts.md", "EMERGENCY.md"])
def test_each_command_answers_what_its_page_promises(shell: Shell, page: str) -> None:
    wrong, seen = [], set[str]()
    shell.must("kubectl -n forecast-scheduler delete job train-now --ignore-not-found")
    for line in typed(page):
        if line in seen:
            continue
        seen.add(line)
        if "explain" in line:
            _hold_again(shell)
        done = shell.run(line)
        pattern = next((says for begin, says in _SAYS.items() if line.startswith(begin)), "")
        code = next((code for begin, code in _DEGRADED.items() if line.startswith(begin)), 0)
        if done.returncode != code or not re.search(pattern, done.stdout):
            wrong.append(f"$ {line}\n[{done.returncode}] {done.stdout[-1500:]}")
    assert not wrong, "\n".join(wrong)


def _hold_again(shell: Shell) -> None:
    """A pod behind our gate that no process releases, as it hangs when the runbook is opened."""
    shell.must(f"kubectl -n shop delete pod {_HELD} --ignore-not-found --grace-period 0 --force")
    manifest = yaml.safe_load((shell.directory / "advised.yaml").read_text())
    assert manifest["spec"]["schedulingGates"] == [{"name": ADVICE}]
    shell.must("kubectl create -f advised.yaml")
