"""The four services on one API server, each with an honest question: what benchmarks/attacks.py attacks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.schedule_process import prepare
from testing.processes.attacks import Target
from testing.processes.scenery import Scenery, publish, scenery
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.processes.webhook_process import Api, WebhookProcess, plain_pod
from testing.reviews import review_of
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.prometheus import free_port

SERVICES: Final = ("webhook", "extender", "scorer", "schedule")
_FRAMES: Final = {
    "webhook": '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"",'
    '"version":"v1","kind":"Pod"},"namespace":"default","operation":"CREATE","object":%s}}',
    "extender": '{"Pod":%s,"NodeNames":[]}',
}
_MOST_POINTS: Final = 20.0
"""A score may move by so much when a half hour begins."""


@dataclass(frozen=True, slots=True)
class Attacked:
    """question: path and body of an honest client; right: whether the answer is as good as the first

    probes: where the kubelet asks as shipped; None where the code knows no `serving.probe_port`
    """

    name: str
    process: ScorerProcess
    target: Target
    limit: int
    question: tuple[str, bytes]
    right: Callable[[bytes, bytes], bool]
    probes: str | None

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self.process.process is not None
        return self.process.process.pid


@contextmanager
def started(names: tuple[str, ...], code: Path, directory: Path) -> Iterator[list[Attacked]]:
    """They run while the context lasts. code: directory of the code that they run."""
    limits, has_probes = _defaults(code)
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane())
        with ClusterWriter(plane) as writer:
            cluster = scenery(writer)
        publish(directory / "models", cluster.truth)
        prepare(plane)
        with Api(plane) as api:
            api.install_crds()
        ports = {name: free_port() if has_probes else None for name in names}
        yield [_started(name, plane, cluster, code, directory, limits[name], ports[name], stack) for name in names]


def _started(
    name: str,
    plane: ControlPlane,
    cluster: Scenery,
    code: Path,
    directory: Path,
    body: int,
    probes: int | None,
    stack: ExitStack,
) -> Attacked:
    process: ScorerProcess
    environment = {} if probes is None else {f"FORECAST_SCHEDULER_{name.upper()}__PROBE_PORT": str(probes)}
    if name == "webhook":
        process = WebhookProcess(directory / name, plane.kubeconfig, code=code, environment=environment)
    else:
        arguments: list[str | Path] = ["--kubeconfig", plane.kubeconfig, "--models", directory / "models"]
        arguments += ["--domain", ""] if name == "schedule" else []
        process = ScorerProcess(
            directory / name, *arguments, settings={}, command=name, code=code, environment=environment
        )
    stack.enter_context(process)
    path, question, right = _honest(name, cluster)
    port = int(process.url.rpartition(":")[2])
    target = Target(
        "127.0.0.1",
        port,
        path,
        "/openapi.json" if name == "webhook" else "/metrics",
        body,
        tls=name == "webhook",
        frame=_FRAMES.get(name, '{"pod":%s}'),
    )
    asked = None if probes is None else f"http://127.0.0.1:{probes}/healthz"
    return Attacked(name, process, target, _memory_limit(name), (path, question), right, asked)


def _honest(name: str, cluster: Scenery) -> tuple[str, bytes, Callable[[bytes, bytes], bool]]:
    pod = cluster.pod("honest")
    match name:
        case "webhook":
            return "/mutate", review_of(plain_pod("honest", "app")), lambda answer, first: answer == first
        case "extender":
            body = {"Pod": pod, "NodeNames": cluster.nodes}
            return "/filter", json.dumps(body).encode(), lambda answer, first: answer == first
        case "scorer":
            return "/v1/scores", json.dumps({"pod": pod}).encode(), _alike
        case _:
            return "/v1/explain", json.dumps({"pod": pod, "top": 3}).encode(), _as_many


def _alike(answer: bytes, first: bytes) -> bool:
    now, then = (json.loads(one)["scores"] for one in (answer, first))
    return now.keys() == then.keys() and all(abs(now[node] - then[node]) <= _MOST_POINTS for node in now)


def _as_many(answer: bytes, first: bytes) -> bool:
    now, then = (json.loads(one) for one in (answer, first))
    return bool(now["n_nodes"] == then["n_nodes"] and len(now["nodes"]) == len(then["nodes"]))


def _defaults(code: Path) -> tuple[Mapping[str, int], bool]:
    """The largest body that each takes by default, and whether they have a port for probes."""
    asked = "import json; from forecast_scheduler.settings.document import load_settings; s = load_settings(None, {}); "
    asked += f"limits = {{name: getattr(s, name).serving.max_body_bytes for name in {SERVICES!r}}}; "
    asked += "print(json.dumps([limits, hasattr(s.scorer.serving, 'probe_port')]))"
    said = subprocess.run([sys.executable, "-c", asked], cwd=code, check=True, capture_output=True, text=True)
    limits, has_probes = json.loads(said.stdout)
    return limits, has_probes


def _memory_limit(name: str) -> int:
    """Bytes, as shipped."""
    found = yaml.safe_load_all((ROOT / "deploy" / "base" / name / f"{name}.yaml").read_text())
    deployment: dict[str, Any] = next(one for one in found if one and one["kind"] == "Deployment")
    shown = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    units = {"Mi": 2**20, "Gi": 2**30}
    return int(shown[:-2]) * units[shown[-2:]]
