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
from tests.extender.webhook.reviews import review_of
from tests.processes.attacks import Target
from tests.processes.scenery import Scenery, publish, scenery
from tests.processes.scorer_process import ROOT, ScorerProcess
from tests.processes.webhook_process import Api, WebhookProcess, plain_pod
from tests.servers.cluster_objects import ClusterWriter
from tests.servers.control_plane.control_plane import ControlPlane

__all__ = ["SERVICES", "Attacked", "started"]

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
    """question: path and body of an honest client; right: whether the answer is as good as the first"""

    name: str
    process: ScorerProcess
    target: Target
    limit: int
    question: tuple[str, bytes]
    right: Callable[[bytes, bytes], bool]

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self.process.process is not None
        return self.process.process.pid


@contextmanager
def started(names: tuple[str, ...], code: Path, directory: Path) -> Iterator[list[Attacked]]:
    """They run while the context lasts. code: directory of the code that they run."""
    limits = _body_limits(code)
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane())
        with ClusterWriter(plane) as writer:
            cluster = scenery(writer)
        publish(directory / "models", cluster.truth)
        prepare(plane)
        with Api(plane) as api:
            api.install_crds()
        yield [_started(name, plane, cluster, code, directory, limits[name], stack) for name in names]


def _started(
    name: str, plane: ControlPlane, cluster: Scenery, code: Path, directory: Path, body: int, stack: ExitStack
) -> Attacked:
    process: ScorerProcess
    if name == "webhook":
        process = WebhookProcess(directory / name, plane.kubeconfig, code=code)
    else:
        arguments: list[str | Path] = ["--kubeconfig", plane.kubeconfig, "--models", directory / "models"]
        arguments += ["--domain", ""] if name == "schedule" else []
        process = ScorerProcess(directory / name, *arguments, settings={}, command=name, code=code)
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
    return Attacked(name, process, target, _memory_limit(name), (path, question), right)


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


def _body_limits(code: Path) -> Mapping[str, int]:
    """The largest body that each takes by default."""
    asked = "import json; from forecast_scheduler.settings import load_settings; s = load_settings(None, {}); "
    asked += f"print(json.dumps({{name: getattr(s, name).max_body_bytes for name in {SERVICES!r}}}))"
    said = subprocess.run([sys.executable, "-c", asked], cwd=code, check=True, capture_output=True, text=True)
    found: Mapping[str, int] = json.loads(said.stdout)
    return found


def _memory_limit(name: str) -> int:
    """Bytes, as shipped."""
    found = yaml.safe_load_all((ROOT / "deploy" / "base" / name / f"{name}.yaml").read_text())
    deployment: dict[str, Any] = next(one for one in found if one and one["kind"] == "Deployment")
    shown = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    units = {"Mi": 2**20, "Gi": 2**30}
    return int(shown[:-2]) * units[shown[-2:]]
