"""Policies from a ConfigMap, followed by a running extender beside a real kube-scheduler: changed, broken, deleted."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from testing.processes.command import command
from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ROOT, ScorerProcess, eventually
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.prometheus import PrometheusServer
from tests.processes.conftest import Started
from tests.processes.placing import Placing, counter, decisions, events

OURS = "forecast-scheduler.io/"
POOL = "test/policy-pool"
SOON = 2.0
"""Seconds within which a change takes effect."""

IN_GROUP, WITH_CARD = ("x-0", "x-1"), ("y-0", "y-1")
FITS_BOTH = {OURS + "machine-group": "x", OURS + "gpu-type": "H100"}
"""Annotations of every pod here: the filter MachineGroup lets it go to IN_GROUP only, CardTypes to WITH_CARD only."""

BY_GROUP = {"default": "by-group", "policies": {"by-group": {"filters": ["MachineGroup"]}}}
BY_CARD = {
    "default": "by-card",
    "policies": {"by-card": {"filters": ["CardTypes"]}},
}
BOTH = {"default": "by-card", "policies": BY_GROUP["policies"] | BY_CARD["policies"]}  # type: ignore[operator]
BROKEN = {"policies": {"by-card": {"scores": {"weights": {"predicted_peek": 1}}}}}
Extending = Callable[..., ScorerProcess]


def config_map(name: str, document: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"policies.yaml": yaml.safe_dump(dict(document))},
    }


@pytest.fixture
def extending(start: Started, prometheus: PrometheusServer) -> Extending:
    """extending(name) -> an extender that follows this ConfigMap. It has time: the machine may be busy."""

    def start_extender(name: str, *arguments: str | Path, **rest: Any) -> ScorerProcess:
        groups = {
            "scorer": {"usage_every": "1s", "model_every": "1s"},
            "extender": {"deadline": "9s", "decisions": {"events_per_second": 100}},
        }
        options = ["--prometheus", prometheus.url, "--policies", f"configmap:default/{name}"]
        return start(*options, *arguments, settings=groups, command="extender", **rest)

    return start_extender


@pytest.fixture
def placing(writer: ClusterWriter) -> Iterator[Placing]:
    """With nodes that two filters tell apart."""
    with Placing(writer) as placing:
        placing.make(
            *(node(name, cpu="64", pods=500, labels={POOL: "p", OURS + "machine-group": "x"}) for name in IN_GROUP),
            *(
                node(name, cpu="64", pods=500, labels={POOL: "p", "nvidia.com/gpu.product": "H100"})
                for name in WITH_CARD
            ),
        )
        yield placing


@pytest.fixture
def pods(cluster: Scenery) -> Callable[..., list[Manifest]]:
    """Pods for these nodes, by name."""

    def make(prefix: str, count: int, annotations: Mapping[str, str] | None = None) -> list[Manifest]:
        made = [
            cluster.pod(f"{prefix}-{i:03d}", service=i % 5, cpu="50m", annotations=FITS_BOTH | dict(annotations or {}))
            for i in range(count)
        ]
        for one in made:
            one["spec"]["nodeSelector"] = {POOL: "p"}
        return made

    return make


def scheduler(plane: ControlPlane, live: ScorerProcess) -> KubeScheduler:
    """With the configuration that is shipped, but in no hurry: an extender that is late would be passed over."""
    shipped = yaml.safe_load((ROOT / "deploy/kube-scheduler/scheduler-config.yaml").read_text())
    shipped["clientConnection"]["kubeconfig"] = str(plane.kubeconfig)
    (ours,) = shipped["extenders"]
    ours |= {"urlPrefix": live.url, "enableHTTPS": False, "ignorable": False, "httpTimeout": "10s"}
    del ours["tlsConfig"]
    return KubeScheduler(plane, settings=shipped | {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1})


class Flow:
    """Context manager: a thread that creates pods all the time. created: seconds (monotonic) by name of the pod."""

    def __init__(self, placing: Placing, pods: list[Manifest], *, every: float = 0.05) -> None:
        self._placing, self._pods, self._every = placing, pods, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.created: dict[str, float] = {}

    def __enter__(self) -> Flow:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop.set()
        self._thread.join()

    def since(self, moment: float) -> int:
        """How many were created after this moment."""
        return sum(at > moment for at in list(self.created.values()))

    def _run(self) -> None:
        for one in self._pods:
            at = time.monotonic()
            self._placing.make(one)
            self.created[one["metadata"]["name"]] = at
            if self._stop.wait(self._every):
                return


def test_a_check_compares_with_the_config_map_in_place_and_changes_nothing(
    plane: ControlPlane, cluster: Scenery, writer: ClusterWriter, placing: Placing, models: Path, tmp_path: Path
) -> None:
    namespaces = sorted({service.namespace for service in cluster.truth.model.services})
    piled = {"filters": [], "scores": {"weights": {"most_allocated": 1}}}
    rule = {"policy": "piled", "namespace_selector": {"matchLabels": {"kubernetes.io/metadata.name": namespaces[0]}}}
    placing.make(config_map("in-place", {"policies": {"piled": piled}}), pod("elsewhere", node=cluster.nodes[0]))
    file = tmp_path / "policies.yaml"
    file.write_text(yaml.safe_dump({"policies": {"piled": piled}, "rules": [rule]}))
    before = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in writer.list_all("pods")}
    options = ["--models", models, "--against", "configmap:default/in-place", "--json", "-"]

    ended = command("policy", "check", file, "--kubeconfig", plane.kubeconfig, *options)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["cluster"]
    in_namespace = sum(one.namespace == namespaces[0] for one in cluster.truth.pods)
    assert {one["because"]: one["pods"] for one in found["choices"]} == {
        "rule 1": in_namespace,
        "no rule holds": len(before) - in_namespace,  # elsewhere
    }
    assert found["touched_pods"] == sum(one["pods"] for one in found["touched"]) == in_namespace > 0
    assert all(one["after"]["peak_share"] > 0 and one["after"]["feasible_nodes"] > 1 for one in found["touched"])
    assert any(one["moves"] for one in found["touched"])
    assert {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in writer.list_all("pods")} == before

    for kubeconfig, where, message in (
        (plane.kubeconfig, "configmap:default/nowhere", "there is no ConfigMap default/nowhere"),
        (plane.write_kubeconfig("nobody", plane.powerless_token), "configmap:default/in-place", "403"),
    ):
        ended = command("policy", "check", file, "--kubeconfig", kubeconfig, "--against", where)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
        assert message in ended.stderr


def test_a_policy_is_switched_while_pods_flow(
    plane: ControlPlane,
    writer: ClusterWriter,
    extending: Extending,
    placing: Placing,
    pods: Callable[..., list[Manifest]],
    tmp_path: Path,
) -> None:
    log = tmp_path / "decisions.jsonl"
    placing.make(config_map("switched", BY_GROUP))
    live = extending("switched", "--decisions", log)
    process = live.process
    with scheduler(plane, live), Flow(placing, pods("flow", 2000)) as flow:
        assert eventually(lambda: len(flow.created) > 20, 60)
        before = placing.wait(list(flow.created))
        writer.patch(config_map("switched", {}), {"data": {"policies.yaml": yaml.safe_dump(BY_CARD)}})
        changed = time.monotonic()
        assert eventually(lambda: flow.since(changed + SOON) > 20, 60)
        flow.__exit__()
        nodes = placing.wait(list(flow.created), 120)  # none is lost, none is left waiting
    late = {name: nodes[name] for name, at in flow.created.items() if at > changed + SOON}
    assert set(before.values()) <= set(IN_GROUP) and min(len(before), len(late)) > 20
    assert set(late.values()) <= set(WITH_CARD)
    lines = decisions(log, nodes)
    assert all(lines[name]["policy"] == "by-card" for name in late)
    assert {line["policy"] for line in lines.values()} == {"by-group", "by-card"}
    for policy in ("by-group", "by-card"):
        of_policy = sum(line["policy"] == policy for line in lines.values())
        assert of_policy > 0
        assert eventually(
            lambda p=policy, n=of_policy: counter(live, "forecast_policy_pods_total", policy=p) == n  # type: ignore[misc]
        )
    assert live.process is process and not live.process_ended()
    assert "Traceback" not in live.log, live.log.partition("Traceback")[2][:4000]


def test_a_broken_or_deleted_document_leaves_the_last_good_one_in_effect(
    plane: ControlPlane,
    writer: ClusterWriter,
    extending: Extending,
    placing: Placing,
    pods: Callable[..., list[Manifest]],
) -> None:
    placing.make(config_map("broken", BY_CARD))
    live = extending("broken")

    def is_valid() -> bool:
        return live.metric("forecast_policy_document_valid") == 1

    assert eventually(is_valid)
    with scheduler(plane, live):
        assert set(placing.place(pods("good", 4)).values()) <= set(WITH_CARD)

        writer.patch(config_map("broken", {}), {"data": {"policies.yaml": yaml.safe_dump(BROKEN)}})
        assert eventually(lambda: not is_valid())
        assert set(placing.place(pods("refused", 4)).values()) <= set(WITH_CARD)
        assert eventually(lambda: "broken" in events(plane, "PolicyRefused"))
        told = events(plane, "PolicyRefused")["broken"]
        assert told["regarding"]["kind"] == "ConfigMap" and told["type"] == "Warning"
        assert "did you mean predicted_peak?" in told["note"]

        writer.patch(config_map("broken", {}), {"data": {"policies.yaml": yaml.safe_dump(BY_GROUP)}})
        assert eventually(is_valid)
        assert set(placing.place(pods("mended", 4)).values()) <= set(IN_GROUP)

        writer.patch(config_map("broken", {}), {"data": {"policies.yaml": yaml.safe_dump(BY_CARD)}})
        assert eventually(lambda: counter(live, "forecast_policy_reloads_total", outcome="accepted") == 3)
        writer.delete(config_map("broken", {}))
        assert eventually(lambda: not is_valid() and "broken" in events(plane, "PolicyGone"))
        assert set(placing.place(pods("deleted", 4)).values()) <= set(WITH_CARD)

    # A start with nothing good to begin with: the policy of the settings, which runs both filters.
    placing.make(config_map("broken", BROKEN))
    live.close()
    again = extending("broken")  # which is ready all the same
    assert again.metric("forecast_policy_document_valid") == 0
    assert any("predicted_peek" in line for line in again.complaints), again.log
    with scheduler(plane, again):
        assert set(placing.place(pods("restarted", 4, {OURS + "gpu-type": ""})).values()) <= set(IN_GROUP)
    assert counter(again, "forecast_policy_pods_total", policy="settings") >= 4
    for process in (live, again):
        assert "Traceback" not in process.log, process.log.partition("Traceback")[2][:4000]


def test_a_pod_chooses_by_annotation_and_is_told_of_a_name_that_there_is_not(
    plane: ControlPlane,
    extending: Extending,
    placing: Placing,
    pods: Callable[..., list[Manifest]],
    tmp_path: Path,
) -> None:
    log = tmp_path / "decisions.jsonl"
    placing.make(config_map("both", BOTH))
    live = extending("both", "--decisions", log)
    with scheduler(plane, live):
        chosen = placing.place(pods("chosen", 4, {OURS + "policy": "by-group"}))
        unknown = placing.place(pods("unknown", 4, {OURS + "policy": "by-grope"}))
    assert set(chosen.values()) <= set(IN_GROUP)
    assert set(unknown.values()) <= set(WITH_CARD)  # as if it had none
    lines = decisions(log, [*chosen, *unknown])
    for names, policy, because in ((chosen, "by-group", "its annotation"), (unknown, "by-card", "the default; ")):
        assert {lines[name]["policy"] for name in names} == {policy}
        assert all(lines[name]["policy_because"].startswith(because) for name in names)
    assert eventually(lambda: bool(events(plane, "UnknownPolicy").keys() & unknown.keys()))
    told = events(plane, "UnknownPolicy")
    assert not told.keys() & chosen.keys()
    first = next(told[name] for name in unknown if name in told)
    assert "by-grope" in first["note"] and first["regarding"]["kind"] == "Pod"
    assert live.metric("forecast_policy_unknown_total") >= 4
