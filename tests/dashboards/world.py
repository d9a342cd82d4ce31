"""A cluster in which everything of ours runs, and a real Prometheus that scrapes it and holds its last hours.

    with World(directory) as world:
        world.prometheus.url, world.now

Processes are the commands as users start them: train (twice, so that its gate has something to say), scorer, extender
beside a real kube-scheduler, schedule with all profiles, rebalance in shadow mode, webhook. Rules are those of
dashboards/, only evaluated every three seconds. Nothing is wrong anywhere: alerts must be silent.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode

import msgspec
import yaml

from rebalancer.execution.plan_records import PLANS_PATH
from rebalancer.execution.plan_wire import (
    API_VERSION,
    KIND,
    PlanGrade,
    PlanMode,
    PlanPhase,
    PlanSpec,
    PlanStatus,
    Trigger,
    moment,
)
from rebalancer.plan_book import night_name
from testing.clusters.own_nodes import nodes_of, settings_of_schedule
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api, Refused, WebhookProcess, plain_pod
from testing.reviews import review_of
from testing.servers.cluster_objects import ClusterWriter
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler, extender
from testing.servers.control_plane.pool import control_plane
from testing.servers.openmetrics import write_blocks
from testing.servers.prometheus import PrometheusServer, free_port
from testing.waiting import eventually
from tests.dashboards.steady_cluster import FIRST_POD, create_objects, recorded, still_true, write_histories
from tests.dashboards.workload import SCHEDULE, Workload, fill

_LONG: Final = 180.0
_SCRAPE_SECONDS: Final = 2
_QUICK: Final = {"usage_every": "2s", "model_every": "1s", "overview_every": "5s"}
_REBALANCE: Final = {"mode": "shadow", "leader_election": {"enabled": False}}
_DASHBOARDS: Final = ROOT / "dashboards"
_CRDS: Final = (
    "crds/nodeschedulerconfigs.yaml",
    "crds/podschedulerconfigs.yaml",
    "crds/schedulerconfigbindings.yaml",
    "crds/podgroups/podgroups.yaml",
    "crds/rebalanceplans/rebalanceplans.yaml",
)


def rule_files(directory: Path) -> list[Path]:
    """Copies of all rules that are shipped, evaluated every three seconds."""
    made = []
    for source in (_DASHBOARDS / "recording-rules.yaml", *sorted((_DASHBOARDS / "prometheus").glob("*.yaml"))):
        rules = yaml.safe_load(source.read_text())
        for one in rules["groups"]:
            one["interval"] = "3s"
        path = directory / source.name
        path.write_text(yaml.safe_dump(rules))
        made.append(path)
    return made


class World:
    """Context manager; everything has been scraped a few times when it is entered.

    directory  : with `models` and `policies.yaml`, which the processes read
    prometheus : has rules and alerts loaded
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self._stack = directory, ExitStack()
        self.prometheus: PrometheusServer
        self.processes: dict[str, ScorerProcess] = {}

    def __enter__(self) -> Self:
        with self._stack as stack:
            self._enter(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def now(self) -> datetime:
        """The time in the world."""
        return datetime.now(UTC)

    def ask(self, path: str, **parameters: str) -> Any:
        """What Prometheus answers at /api/v1/...; raises AssertionError unless it is a success without warnings."""
        url = f"{self.prometheus.url}/api/v1/{path}?{urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        assert said["status"] == "success" and not said.get("warnings"), (parameters, said)
        return said["data"]

    def value(self, query: str) -> float:
        """Sum of an instant query; 0 without data."""
        return sum(float(one["value"][1]) for one in self.ask("query", query=query)["result"])

    def _enter(self, stack: ExitStack) -> None:
        threads = stack.enter_context(ThreadPoolExecutor(8))
        plane_ready = threads.submit(self._control_plane, stack)
        (self.directory / "textfiles").mkdir()
        write_histories(self.directory, self.now.date())
        self._train("before", "models")
        shutil.copytree(self.directory / "models", self.directory / "next-models")
        training = threads.submit(self._train, "until-today", "next-models")
        plane = plane_ready.result()
        writer = stack.enter_context(ClusterWriter(plane))
        series = recorded()
        write_blocks(series, self.directory / "blocks")
        (self.directory / "textfiles" / "recorded.prom").write_text(still_true(series))
        workload = fill(plane, writer, create_objects(writer))
        self._serve(stack, plane)
        training.result()
        seen = "count(count by (job) (forecast_model_info))"
        assert eventually(lambda: self.value(seen) >= 3, _LONG), "the first model is not scraped"
        # As a copy from an object store does it: what is in use is changed in the last write.
        for path in sorted((self.directory / "next-models").iterdir(), key=lambda path: path.name == "latest.json"):
            _replace(path, self.directory / "models" / path.name)
        self._use(writer, workload)

    def _control_plane(self, stack: ExitStack) -> ControlPlane:
        plane = self.plane = stack.enter_context(control_plane())
        with Api(plane) as api:
            for path, manifest in shipped(*_CRDS):
                api.request("POST", path, manifest)
            assert eventually(api.crds_are_served, _LONG)
            _plan_a_night(api)
        return plane

    def _train(self, history: str, models: str) -> None:
        """One nightly run; its figures go where the textfile collector would look."""
        places = {"--history": history, "--models": models, "--metrics": "textfiles/train.prom"}
        given = [str(part) for name, at in places.items() for part in (name, self.directory / at)]
        command = [sys.executable, "-m", "forecast_scheduler", "train", *given]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr

    def _serve(self, stack: ExitStack, plane: ControlPlane) -> None:
        """All processes that go on, and Prometheus beside them, which knows their ports from the beginning."""
        directory, port = self.directory, free_port()
        usual = ("--kubeconfig", plane.kubeconfig, "--models", directory / "models")
        measured = ("--prometheus", f"http://127.0.0.1:{port}")

        policies = directory / "policies.yaml"
        policies.write_text(yaml.safe_dump({"default": "balanced", "policies": {"balanced": {}}}))

        def start(command: str, settings: Mapping[str, Any]) -> ScorerProcess:
            settings = {"policies": {"file": str(policies), "events": False}, **settings}
            made = ScorerProcess(
                directory / command, *usual, *measured, settings=settings, ready=False, command=command, forked=True
            )
            return stack.enter_context(made)

        # Two at a time, as there may be two processors: a process has a minute to start.
        two = stack.enter_context(ThreadPoolExecutor(2))
        started: dict[str, Future[Any]] = {
            "scorer": two.submit(start, "scorer", {"scorer": _QUICK | {"self_check_every": "10s"}}),
            "extender": two.submit(start, "extender", {"scorer": _QUICK, "extender": {"deadline": "9s"}}),
            "schedule": two.submit(start, "schedule", settings_of_schedule(**SCHEDULE) | {"scorer": _QUICK}),
            "rebalancer": two.submit(start, "rebalance", {"scorer": _QUICK, "rebalance": _REBALANCE}),
            "webhook": two.submit(
                lambda: stack.enter_context(WebhookProcess(directory / "webhook", plane.kubeconfig, forked=True))
            ),
        }
        self.processes = {name: one.result() for name, one in started.items()}
        textfiles = stack.enter_context(_Serving(directory / "textfiles"))
        webhook = self.processes["webhook"]
        assert isinstance(webhook, WebhookProcess)
        scrapes = [_scrape(f"forecast-scheduler-{name}", one.url) for name, one in self.processes.items()]
        scrapes[-1] |= {"scheme": "https", "tls_config": {"ca_file": str(webhook.ca)}}
        scrapes.append(_scrape("node-exporter", textfiles) | {"metrics_path": "/train.prom"})
        # The same series as in the blocks, which have neither job nor instance.
        plain = [{"action": "labeldrop", "regex": "job|instance"}]
        recorded = {"metrics_path": "/recorded.prom", "metric_relabel_configs": plain}
        scrapes.append(_scrape("recorded", textfiles) | recorded)
        self.prometheus = stack.enter_context(
            PrometheusServer(directory / "blocks", rule_files=rule_files(directory), scrapes=scrapes, port=port)
        )
        for one in self.processes.values():
            one.wait_ready(_LONG)
        beside = [extender(self.processes["extender"].url, filterVerb="filter", prioritizeVerb="prioritize", weight=2)]
        stack.enter_context(KubeScheduler(plane, beside))

    def _use(self, writer: ClusterWriter, workload: Workload) -> None:
        """Wait until all that is to happen has happened, and has been scraped."""
        scorer, webhook = self.processes["scorer"], self.processes["webhook"]
        scorer.post("/v1/scores", {"pod": dict(zip(("namespace", "name"), FIRST_POD, strict=True))})
        webhook.post("/mutate", json.loads(review_of(plain_pod("asked", "asked"))))
        for done, what in (
            (lambda: all(_node_of(writer, name) for name in workload.placed), "pods are not placed"),
            (lambda: self.value("forecast_job_held_pods") >= 2, "no job is held"),
        ):
            assert eventually(done, _LONG), f"{what}: {self._said(writer)}"
        self._wait_for_scrapes(2)
        writer.create_many(workload.again)
        workload.release(writer)
        seen = "last_over_time(forecast_model_info[10m])"
        for done, what in (
            (lambda: all(_node_of(writer, one["metadata"]["name"]) for one in workload.again), "pods are not placed"),
            (lambda: _node_of(writer, "sooner"), "the job that is wanted sooner is not placed"),
            (lambda: self.value("forecast_job_held_seconds_count") >= 1, "nobody tells how long it was held"),
            (lambda: self.value(f"count(count by (version) ({seen}))") >= 2, "the model is not swapped"),
            (lambda: self.value('forecast_train_issued_loss_ratio{resource="cpu"}') > 0, "no second run"),
            (lambda: self.value("sum(forecast_decisions_total)") >= 4, "no decisions"),
            (lambda: self.value("count(forecast_node_model_usage)") > 0, "no forecasts"),
            (lambda: self.value("count(forecast_rebalance_planned_moves)") > 0, "no plan of moves"),
            (lambda: self.value("count(forecast_rebalance_night_gain)") > 0, "no grade of a night"),
        ):
            assert eventually(done, _LONG), f"{what}: {self._said(writer)}"
        # A rate needs a sample from before: the series of the first question began with it.
        webhook.post("/mutate", json.loads(review_of(plain_pod("asked", "asked"))))
        self._wait_for_scrapes(4)  # and rules have been evaluated

    def _wait_for_scrapes(self, n: int) -> None:
        """Of every target."""
        scrapes = "min(count_over_time(up[1h]))"
        n_before = self.value(scrapes)
        assert eventually(lambda: self.value(scrapes) >= n_before + n, _LONG), "targets are not scraped"

    def _said(self, writer: ClusterWriter) -> str:
        logs = {name: one.log[-1500:] for name, one in self.processes.items()}
        return f"{nodes_of(writer)} {logs}"


def _plan_a_night(api: Api) -> None:
    """A plan of the rebalancer that was graded."""
    at = moment(datetime.now(UTC).timestamp())
    night = at.date() - timedelta(days=2)
    made = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": night_name(night)},
        "spec": msgspec.to_builtins(PlanSpec(at - timedelta(days=2), Trigger.NIGHT, PlanMode.SHADOW)),
    }

    def is_created() -> bool:
        try:
            api.request("POST", PLANS_PATH, made)
        except Refused:
            return False
        return True

    assert eventually(is_created, _LONG), "RebalancePlans are not served"
    grade = PlanGrade(predicted=9.0, realised=7.5, at=at, verdict="good")
    status = msgspec.to_builtins(PlanStatus(PlanPhase.REPORTED, grade=grade))
    api.request("PATCH", f"{PLANS_PATH}/{night_name(night)}/status", {"status": status})


def _replace(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.name == "latest.json":
        part = target.with_suffix(".part")
        shutil.copy(source, part)
        part.replace(target)


def _node_of(writer: ClusterWriter, name: str) -> bool:
    return bool(nodes_of(writer, name).get(name))


def _scrape(job: str, url: str) -> dict[str, Any]:
    return {
        "job_name": job,
        "scrape_interval": f"{_SCRAPE_SECONDS}s",
        "scrape_timeout": f"{_SCRAPE_SECONDS}s",
        "static_configs": [{"targets": [url.partition("//")[2]]}],
    }


class _Serving:
    """Context manager: the files of a directory over HTTP; `with` gives the URL."""

    def __init__(self, directory: Path) -> None:
        handler = partial(_Quiet, directory=str(directory))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(self, *unused: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map: Final = {".prom": "text/plain; version=0.0.4"}  # type: ignore[misc]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
