"""Everything around the scheduling loop, on a real API server, with a loop that does nothing but remember its parts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from forecast.errors import ForecastError, InputError
from forecast_scheduler.commands.schedule.live import LiveSchedule, open_schedule
from forecast_scheduler.commands.scorer.setup import Inputs
from forecast_scheduler.settings.document import Settings, with_options
from scheduler.loop_parts import LoopParts
from testing.processes.scorer_process import eventually
from testing.processes.webhook_process import Api, Refused
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from tests.scheduler.binding.made_up import pod_info

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/forecast-scheduler"


class IdleLoop:
    """events: what was done with it."""

    def __init__(self, parts: LoopParts) -> None:
        self.parts, self.events = parts, list[str]()
        self.queue: Any = SimpleNamespace(lengths=lambda: {"active": 0}, waiting=list, incoming=dict)
        self.bindings: Any = SimpleNamespace(in_flight=0, throttled=3)
        self.core: Any = None  # of replicas that share the nodes

    def since_cycle(self) -> float | None:
        return None

    def start(self) -> None:
        self.events.append("started")

    def stop(self) -> None:
        self.events.append("stopped, may write" if self.parts.may_write() else "stopped, may not write")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running, ClusterWriter(running) as writer:
        writer.create(node("node-1", labels={"forecast-scheduler.io/domain": "forecast-scheduler"}))
        writer.create(pod("cart-1", scheduler_name="forecast-scheduler"))
        yield running


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    with Api(plane) as api:
        yield api


def _settings(tmp_path: Any, **schedule: Any) -> Settings:
    models = {"location": str(tmp_path / "none")}
    return with_options(Settings(), {"models": models, "schedule": {"lease": {"namespace": "default"}, **schedule}})


def _opened(settings: Settings, plane: ControlPlane, loops: list[IdleLoop]) -> Any:
    def make(parts: LoopParts) -> IdleLoop:
        loops.append(IdleLoop(parts))
        return loops[-1]

    return open_schedule(settings, Inputs(kubeconfig=plane.kubeconfig), make)


def _holder(api: Api) -> str | None:
    try:
        found: str = api.request("GET", LEASE)["spec"].get("holderIdentity", "")
    except Refused:
        return None
    return found


def test_a_replica_leads_reads_everything_and_gives_the_lease_back(
    plane: ControlPlane, api: Api, tmp_path: Any
) -> None:
    loops: list[IdleLoop] = []
    live: LiveSchedule
    with _opened(_settings(tmp_path), plane, loops) as live:
        parts = loops[0].parts
        assert not parts.may_write()
        with live.background, live.running():
            assert eventually(lambda: parts.waits_for() == "", 60), parts.waits_for()
            assert eventually(parts.may_write, 60)
            state = live.scheduling.state()
            assert state.is_leader and state.leader == _holder(api) and state.is_alive
            assert state.profiles == {"online": "forecast-scheduler"}
            view = parts.tables.view
            assert set(view.state.row_of) == {"node-1"}
            assert [one.name for one in view.state.pods.values()] == ["cart-1"]
            text = {name for one in live.collectors for name in (metric.name for metric in one.collect())}
            assert {"forecast_leader", "forecast_overcommits", "forecast_gangs"} <= text
            assert {"forecast_conditions", "forecast_scheduling_events", "forecast_bindings_throttled"} <= text
        assert loops[0].events == ["started", "stopped, may write"]  # the Lease is given back after it
        assert _holder(api) == ""


def test_what_only_the_tables_of_profiles_read_is_followed(plane: ControlPlane, api: Api, tmp_path: Any) -> None:
    request = {"name": "card", "exactly": {"deviceClassName": "gpu.example.com"}}
    claim = {"metadata": {"name": "train"}, "spec": {"devices": {"requests": [request]}}}
    api.request("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", claim)
    loops: list[IdleLoop] = []
    with _opened(_settings(tmp_path, profiles=["gpu", "job"]), plane, loops) as live, live.background, live.running():
        tables = loops[0].parts.tables
        gpus, jobs = tables.gpus, tables.jobs
        assert gpus is not None and jobs is not None
        assert eventually(lambda: jobs.cron_jobs.version > 0, 60), "CronJobs are not listed"
        claims = gpus.claims.table.all_claims
        assert eventually(lambda: [one.name for one in claims()] == ["train"], 60), "claims are not followed"


def test_a_dry_run_takes_no_lease_and_writes_and_tells_nothing(
    plane: ControlPlane, api: Api, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    before, loops = _holder(api), list[IdleLoop]()
    settings = _settings(tmp_path, dry_run=True)
    with _opened(settings, plane, loops) as live, live.background, live.running():
        parts = loops[0].parts
        assert eventually(lambda: parts.waits_for() == "", 60), parts.waits_for()
        state = live.scheduling.state()
        assert state.is_dry_run and state.leader is None and not state.is_leader and not parts.may_write()
        path = "/api/v1/namespaces/default/pods/cart-1"
        answer = parts.session.submit(parts.session.request("DELETE", path, None, seconds=5.0)).result(20)
        assert answer.status <= 0  # it was not even sent
        caplog.clear()
        with caplog.at_level(logging.DEBUG):
            for _ in range(2):
                parts.reports.failed(pod_info("cart-1"), "0/1 nodes are available")
            parts.reports.preempted(pod_info("cart-2"), "for cart-1")
            parts.reports.scheduled(pod_info("cart-1"), "node-1")
        ours = [one for one in caplog.records if one.message.startswith("would ")]
        assert [(one.message, one.levelname) for one in ours] == [
            ("would wait", "INFO"), ("would wait", "DEBUG"), ("would be evicted", "INFO")
        ]  # fmt: skip
        assert "may not write" not in caplog.text
    assert api.request("GET", path)["metadata"].get("deletionTimestamp") is None
    assert _holder(api) == before


def test_without_rights_it_does_not_start(plane: ControlPlane, tmp_path: Any) -> None:
    forbidden = plane.write_kubeconfig("nobody", plane.powerless_token)
    before = threading.active_count()
    with (
        pytest.raises(InputError, match="403"),
        open_schedule(_settings(tmp_path), Inputs(kubeconfig=forbidden), IdleLoop),
    ):
        pass
    assert threading.active_count() == before
    nowhere = plane.write_kubeconfig("nowhere", "x", url="https://127.0.0.1:1")
    with (
        pytest.raises(ForecastError, match="does not answer"),
        open_schedule(_settings(tmp_path), Inputs(kubeconfig=nowhere), IdleLoop),
    ):
        pass
