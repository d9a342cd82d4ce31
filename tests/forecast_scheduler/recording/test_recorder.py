"""Kubelets behind a real API server's node proxy become a history, whatever happens on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from base.errors import InputError
from forecast.calendar import Calendar
from forecast_scheduler.recording.kubelets import KubeletProxy, MetricsApi, choose_way
from forecast_scheduler.recording.listed_pods import ListedPods
from forecast_scheduler.recording.record_history import record_history
from forecast_scheduler.recording.recorder import Recorded, Recorder, check_size, first_forecast
from forecast_scheduler.settings.document import Settings
from kube.client.cluster_access import ClusterAccess
from kube.client.kubernetes_source import KubernetesSource
from testing.servers.cluster_objects import ClusterWriter, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.resource_kubelets import ResourceKubelets, reachable
from testing.waiting import eventually
from tests.forecast_scheduler.recording.played_load import mean_cores, page_of
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.sampling.growing_history import GrowingHistory

NODES = ("n1", "n2", "n3")
MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
STEP = 60.0
SWING = 0.5


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running_plane:
        yield running_plane


@dataclass
class World:
    """Three nodes, a pod of shop/Deployment/cart on each. now: the time of all clocks"""

    now: float
    kubelets: ResourceKubelets
    since: dict[str, float] = field(default_factory=dict)

    def page(self, name: str) -> str:
        return page_of([("shop", f"cart-5d4f-{name}", 0.4)], self.now, swing=SWING, since=self.since)


@pytest.fixture(scope="module")
def world(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ResourceKubelets(tmp_path_factory.mktemp("kubelets"), NODES, lambda name: "") as kubelets:
        made = World(MIDNIGHT, kubelets)
        kubelets.page = made.page
        with ClusterWriter(plane) as writer:
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
            owner = writer.create(replica_set("cart-5d4f", namespace="shop", deployment="cart"))
            for name in NODES:
                writer.create(reachable(node(name, cpu="4", memory="16Gi"), kubelets, only=True))
                writer.create(pod(f"cart-5d4f-{name}", namespace="shop", node=name, owner=owner, status=running()))
        yield made


@dataclass
class Driven:
    """A recorder whose rounds a test runs, without waiting between them."""

    world: World
    recorder: Recorder
    reports: list[Recorded]

    def rounds(self, minutes: int, *, answering: int = len(NODES)) -> None:
        for _ in range(round(minutes * 60 / STEP)):
            before = self.recorder.answered
            self.recorder.round(0.0)
            assert eventually(lambda: self.recorder.answered == before + answering, 30), self.reports  # noqa: B023
            self.world.now += STEP
            self.recorder.tidy(0.0)


@contextmanager
def recorder_of(plane: ControlPlane, world: World, history: Path) -> Iterator[Driven]:
    api, listed, reports = ClusterAccess(plane.kubeconfig).client(connections=12), ListedPods(), list[Recorded]()
    source = KubernetesSource(api, listed)
    source.start()
    ended = threading.Event()
    assert source.wait_synced(30)
    way = KubeletProxy(api, lambda: world.now, ended)
    recording = GrowingHistory(history, SourceOptions(), Calendar("UTC", None), keep_days=30)
    recording.resume(datetime.fromtimestamp(world.now, UTC))
    try:
        yield Driven(
            world,
            Recorder(way, listed, recording, ended=ended, report=reports.append, clock=lambda: world.now),
            reports,
        )
    finally:
        way.close()
        source.stop()


def _usage(history: Path, table: str = "usage.parquet") -> pd.DataFrame:
    frame: pd.DataFrame = pq.read_table(history / table / "2026-11-30.parquet").to_pandas()
    frame["minute"] = (frame["timestamp"].astype("int64") // 10**3 - MIDNIGHT) // 60
    return frame


def test_half_an_hour_of_three_kubelets_is_what_they_used(plane: ControlPlane, world: World, tmp_path: Path) -> None:
    world.now = MIDNIGHT - 120
    with recorder_of(plane, world, tmp_path) as driven:
        driven.rounds(10)
        world.since["cart-5d4f-n1"] = world.now - 20  # its container began anew
        driven.rounds(10)
        world.kubelets.stop("n2")
        driven.rounds(10, answering=2)
        world.kubelets.start("n2")
        driven.rounds(15)
        driven.recorder.store()
    usage = _usage(tmp_path)
    assert set(usage["service"].astype(str)) == {"Deployment/cart"}
    steady = usage[usage["node"] == "n3"].set_index("minute")["cpu_cores"]
    for minute in range(0, 40, 5):
        start = MIDNIGHT + 60 * minute
        assert steady[minute] == pytest.approx(mean_cores(0.4, SWING, start, start + 300), rel=1e-3)
    anew = usage[usage["node"] == "n1"].set_index("minute")["cpu_cores"]
    assert anew[5] == pytest.approx(mean_cores(0.4, SWING, MIDNIGHT + 300, MIDNIGHT + 600), rel=0.15)
    gone = usage[usage["node"] == "n2"].set_index("minute")["cpu_cores"]
    assert gone[[20, 25]].isna().all() and gone[[10, 35]].notna().all() and not (gone == 0).any()
    nodes = _usage(tmp_path, "nodes.parquet")
    assert len(nodes[nodes["node"] == "n2"]) < len(nodes[nodes["node"] == "n3"])
    assert {one.why_not for one in driven.reports} != {""}


def test_a_recorder_that_is_killed_goes_on_where_it_was(plane: ControlPlane, world: World, tmp_path: Path) -> None:
    world.now = MIDNIGHT + 3600
    with recorder_of(plane, world, tmp_path) as driven:
        driven.rounds(17)
    assert not (tmp_path / "usage.parquet").exists()  # nothing was stored, as after kill -9
    world.now += 120
    with recorder_of(plane, world, tmp_path) as driven:
        driven.rounds(12)
        driven.recorder.store()
    minutes = set(_usage(tmp_path)["minute"].astype(int))
    assert {60, 65, 70} <= minutes and {80, 85} <= minutes
    assert driven.reports[-1].until == datetime(2026, 11, 30, 1, 30, tzinfo=UTC)


def test_a_slow_node_holds_up_no_other(plane: ControlPlane, world: World, tmp_path: Path) -> None:
    world.now = MIDNIGHT + 7200
    with recorder_of(plane, world, tmp_path) as driven:
        world.kubelets.slow["n1"] = 30.0
        driven.rounds(12, answering=2)
        world.kubelets.slow.clear()
        driven.recorder.store()
    frame = _usage(tmp_path)
    assert frame[frame["node"] == "n1"]["cpu_cores"].isna().all()
    assert frame[frame["node"] == "n2"]["cpu_cores"].notna().all()


def test_nodes_beyond_the_most_are_said(
    plane: ControlPlane, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forecast_scheduler.recording.recorder.MOST_NODES", 2)
    world.now = MIDNIGHT + 10800
    with recorder_of(plane, world, tmp_path) as driven:
        driven.rounds(3, answering=2)
        driven.recorder.store()
    said = driven.reports[-1]
    assert (said.answered, said.asked, said.why_not) == (6, 9, "only 2 nodes are recorded")


def test_who_may_not_ask_kubelets_is_told_the_ways_out(plane: ControlPlane, world: World, tmp_path: Path) -> None:
    """The right to nodes/metrics opens the kubelet's own port; the proxy asks for nodes/proxy."""
    lists = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list", "watch"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
    ]
    access = ClusterAccess(plane.write_kubeconfig("nobody", plane.powerless_token))
    with pytest.raises(InputError, match="forbids to list nodes"):
        record_history(Settings(), access, tmp_path, print)
    rbac = "rbac.authorization.k8s.io"
    with ClusterWriter(plane) as writer:
        made = {"apiVersion": f"{rbac}/v1", "metadata": {"name": "narrow", "namespace": ""}}
        writer.create(made | {"kind": "ClusterRole", "rules": lists})
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "narrow"}
        subjects = [{"apiGroup": rbac, "kind": "User", "name": "nobody"}]
        writer.create(made | {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects})
    with pytest.raises(InputError, match=r"no right to get nodes/proxy.*metrics\.k8s\.io.*install Prometheus"):
        record_history(Settings(), access, tmp_path, print)
    api = access.client()
    kubelets = KubeletProxy(api, lambda: world.now, threading.Event())
    with pytest.raises(InputError):
        choose_way(kubelets, MetricsApi(api, lambda: world.now, dict), api, NODES)


def test_a_second_recorder_of_one_directory_is_refused(plane: ControlPlane, world: World, tmp_path: Path) -> None:
    ended, said = threading.Event(), list[str]()
    access = ClusterAccess(plane.kubeconfig)
    first = threading.Thread(
        target=record_history, args=(Settings(), access, tmp_path, said.append), kwargs={"ended": ended}
    )
    first.start()
    try:
        assert eventually(lambda: len(said) >= 2, 30)
        with pytest.raises(InputError, match="grows already"):
            record_history(Settings(), access, tmp_path, print)
    finally:
        ended.set()
        first.join(30)
    assert "3 nodes and 3 pods" in said[0] and "every 30 s" in said[0]
    assert said[1].startswith("first forecast: ")


def test_large_clusters_are_sent_to_prometheus() -> None:
    check_size(200)
    with pytest.raises(InputError, match="install Prometheus"):
        check_size(201)


def test_the_first_forecast_is_after_a_day_of_which_half_is_recorded() -> None:
    berlin = Calendar("Europe/Berlin", None)
    morning = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
    assert first_forecast(morning, berlin) == datetime(2026, 11, 30, 23, tzinfo=UTC)
    evening = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
    assert first_forecast(evening, berlin) == datetime(2026, 12, 1, 23, tzinfo=UTC)
