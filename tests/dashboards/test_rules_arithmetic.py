"""Recorded peaks say what they promise: like compared with like, each node and pod once, clusters apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from forecast.service_key import NO_OWNER, Owner, ServiceKey, service_of_pod
from tests.dashboards.promtool_tests import Series, run_rule_tests, series

PEAKS: Final = Path(__file__).parents[2] / "dashboards" / "prometheus" / "peaks.yaml"

DAY: Final = 48  # half hours
MILLIONTHS: Final = 1_000_000


def _recorded(name: str, values: Sequence[float], /, **labels: str) -> Series:
    """Recorded every five minutes, halfway between two evaluations of the peaks."""
    # Every 150 s; no sample on a full or half hour, where versions of Prometheus differ on which window it belongs to.
    return series(name, " ".join(f"_ {value!r}" for value in values), **labels)


def _half_hours(values: Sequence[float]) -> list[float]:
    """Each for half an hour: six samples."""
    return [value for value in values for _ in range(6)]


def _is(record: str, expected: Mapping[str, float], *, hours: float) -> dict[str, Any]:
    """record at that time: labels in braces -> value, and nothing else. Compared to a millionth."""
    samples = [
        {"labels": labels, "value": math.floor(value * MILLIONTHS + 0.5) / MILLIONTHS}
        for labels, value in expected.items()
    ]
    return {
        "eval_time": f"{round(hours * 60)}m",
        "expr": f"round(label_replace({record}, '__name__', '', '', ''), 0.000001)",
        "exp_samples": samples,
    }


def _complaints(directory: Path, given: Sequence[Series], *expected: Mapping[str, Any]) -> str:
    """'' = all is as expected. promtool evaluates all groups at the same steps, whatever their own interval is."""
    return run_rule_tests(directory, [PEAKS], [_test(given, *expected)], every="5m")


def _test(given: Sequence[Series], *expected: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "interval": "150s",
        "input_series": [one.written() for one in given],
        "promql_expr_test": list(expected),
    }


def _node(name: str, **more: str) -> dict[str, str]:
    return {"node": name, "resource": "cpu", **more}


def _labels(**labels: str) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"


def test_peaks_and_errors_of_nodes(tmp_path: Path) -> None:
    """27 hours of two nodes, one of 10 cores and one of 40; everything is told twice, by two replicas or processes."""
    rng, n = np.random.default_rng(1), DAY + 6
    usage = {"small": 2 + rng.random(n * 6), "large": 8 + 4 * rng.random(n * 6)}
    usage["small"][30:36] = 9.0  # higher than all else, and more than a day before the end
    # Half an hour at 8 cores that begins a quarter past: as means over half hours it is never 8.
    usage["small"][6 * 40 + 3 : 6 * 41 + 3] = 8.0
    capacity = {"small": 10.0, "large": 40.0}
    mean = {"small": 2.4, "large": 10.5}
    bound = {"small": 2.5, "large": 10.0}
    given = []
    for replica, factor in (("a", 1.0), ("b", 0.999)):  # the larger counts
        for name, values in usage.items():
            given.append(
                _recorded("forecast:node_usage", (factor * values).tolist(), **_node(name), prometheus_replica=replica)
            )
            for quantile, level in (("0.5", mean[name]), ("0.95", bound[name])):
                predicted = [level * (0.5 if slot < 6 else 1.0) for slot in range(n)]
                given.append(
                    _recorded(
                        "forecast_node_model_usage",
                        _half_hours(predicted),
                        **_node(name, quantile=quantile, job=replica),
                    )
                )
            given.append(
                _recorded("forecast_node_capacity", [capacity[name]] * (n * 6 + 3), **_node(name), job=replica)
            )
    slots = {name: values.reshape(-1, 6).mean(axis=1) for name, values in usage.items()}
    peak = {name: values[-DAY:].max() for name, values in slots.items()}
    assert 5 < peak["small"] < 6
    shares = np.array([peak[name] / capacity[name] for name in usage])
    within = sum(int((slots[name][-DAY:] <= bound[name]).sum()) for name in usage)
    halved = np.where(np.arange(n) < 6, 0.5, 1.0)
    ever_within = sum(int((slots[name] <= halved * bound[name]).sum()) for name in usage)
    now = usage["small"][-9:-3].mean()  # a quarter of an hour before the end
    # Not at a half hour: whether a day then has 48 or 49 of them is another difference between versions.
    after = 27 + 5 / 60
    expected = (
        _is("forecast:node_peak:1d", {_labels(**_node(name)): peak[name] for name in usage}, hours=after),
        _is("forecast:node_peak_spread", {_labels(resource="cpu"): float(shares.std() / shares.mean())}, hours=after),
        _is("forecast:node_coverage:1d", {_labels(resource="cpu"): within / (2 * DAY)}, hours=after),
        _is("forecast:node_coverage:3d", {_labels(resource="cpu"): ever_within / (2 * n)}, hours=after),
        _is(
            "forecast:node_usage_share",
            {_labels(**_node(name)): slots[name][-1] / capacity[name] for name in usage},
            hours=27,
        ),
        _is("forecast:nodes_compared", {_labels(resource="cpu"): 2}, hours=27),
        _is("forecast:node_error{node='small'}", {_labels(**_node("small")): (now - 2.4) / 10}, hours=26.75),
        _is(
            "forecast:node_error",
            {_labels(**_node(name)): (slots[name][5] - mean[name] / 2) / capacity[name] for name in usage},
            hours=3,
        ),
    )
    assert 0.3 < within / (2 * DAY) < 0.9
    complaints = _complaints(tmp_path, given, *expected)
    assert not complaints, complaints


def test_a_forecast_is_held_against_usage_as_the_model_made_it(tmp_path: Path) -> None:
    """Corrected by what is measured now it is usage itself: a model that is off by a factor of six would look right."""
    used = 10.06
    given = [
        _recorded("forecast:node_usage", _half_hours([used] * 4), **_node("n")),
        _recorded("forecast_node_capacity", _half_hours([40.0] * 4), **_node("n")),
    ]
    for name, levels in (("forecast_node_model_usage", (1.69, 2.4)), ("forecast_node_predicted_usage", (used, 10.8))):
        for quantile, level in zip(("0.5", "0.95"), levels, strict=True):
            given.append(_recorded(name, _half_hours([level] * 4), **_node("n", quantile=quantile)))
    cpu = _labels(resource="cpu")
    complaints = _complaints(
        tmp_path,
        given,
        _is("forecast:node_error", {_labels(**_node("n")): (used - 1.69) / 40}, hours=2),
        _is("forecast:nodes_compared", {cpu: 1}, hours=2),
        _is("forecast:nodes_within_bound", {cpu: 0}, hours=2),
        _is("forecast:node_coverage:3d", {cpu: 0}, hours=2),
    )
    assert not complaints, complaints


def test_nodes_whose_usage_is_known_by_address_are_compared_under_their_name(tmp_path: Path) -> None:
    """`instance` of node-exporter is an address as kube-prometheus-stack scrapes it. A cluster has addresses of its
    own."""
    # By what usage is known, the address that kube-state-metrics tells, and the name that results.
    nodes = {
        "10.0.0.1": ("10.0.0.1", "one"),
        "two": ("10.0.0.2", "two"),
        "fd00::3": ("fd00::3", "three"),
        "10.0.0.4": ("10.0.0.4", "10.0.0.4"),
        "five.example.org": ("10.0.0.5", "five.example.org"),
    }
    given: list[Series] = []
    usage: dict[str, float] = {}
    for where in ({}, {"cluster": "eu-1"}, {"cluster": "us-1"}):
        for level, (known_as, (address, name)) in enumerate(nodes.items(), len(given)):
            name = f"{name}-{where['cluster']}" if where and known_as == address != name else name
            for replica in "ab":  # of Prometheus, and of kube-state-metrics
                of_replica = {**where, "prometheus_replica": replica}
                given.append(
                    _recorded("forecast:node_usage", _half_hours([level] * 4), **_node(known_as), **of_replica)
                )
                info = {"node": name, "internal_ip": address, "instance": replica}
                given.append(_recorded("kube_node_info", _half_hours([1.0] * 4), **info, **where))
            usage[_labels(**_node(name), **where)] = level
    # A collector of log bytes has names where node-exporter has addresses; machines that are no nodes stay.
    given.append(_recorded("forecast:node_usage", _half_hours([7.0] * 4), node="one", resource="log"))
    given.append(_recorded("forecast:node_usage", _half_hours([8.0] * 4), **_node("10.9.9.9")))
    usage[_labels(node="one", resource="log")], usage[_labels(**_node("10.9.9.9"))] = 7.0, 8.0
    for quantile in ("0.5", "0.95"):
        predicted = _node("one", quantile=quantile)
        given.append(_recorded("forecast_node_model_usage", _half_hours([2.0] * 4), **predicted))
    complaints = _complaints(
        tmp_path,
        given,
        _is("forecast:node_usage:30m", usage, hours=2),
        _is("forecast:nodes_compared", {_labels(resource="cpu"): 1}, hours=2),
    )
    assert not complaints, complaints


def test_a_node_that_takes_over_an_address_breaks_no_rule(tmp_path: Path) -> None:
    """For five minutes both are known by it: usage is said of either."""
    given = [
        _recorded("forecast:node_usage", _half_hours([3.0] * 4), **_node("10.0.0.1")),
        _recorded("forecast:node_usage", _half_hours([5.0] * 4), **_node("10.0.0.2")),
        _recorded("kube_node_info", _half_hours([1.0] * 4), node="old", internal_ip="10.0.0.1"),
        _recorded("kube_node_info", _half_hours([1.0] * 4), node="new", internal_ip="10.0.0.1"),
        _recorded("kube_node_info", _half_hours([1.0] * 4), node="other", internal_ip="10.0.0.2"),
    ]
    complaints = _complaints(
        tmp_path,
        given,
        _is("sum by (resource) (forecast:node_usage:30m{node=~'old|new'})", {_labels(resource="cpu"): 3}, hours=2),
        _is("forecast:node_usage:30m{node!~'old|new'}", {_labels(**_node("other")): 5}, hours=2),
    )
    assert not complaints, complaints


def test_in_the_middle_of_two_half_hours_both_are_held_against_both(tmp_path: Path) -> None:
    """A forecast that is right in every half hour is right at every moment, the jump from one to the next included."""
    slots = [1.0, 5.0, 2.0, 7.0]
    given = [
        _recorded("forecast:node_usage", _half_hours(slots), **_node("n")),
        _recorded("forecast_node_model_usage", _half_hours(slots), **_node("n", quantile="0.5")),
        _recorded("forecast_node_capacity", _half_hours([10.0] * 4), **_node("n")),
    ]
    expected = [_is("forecast:node_error", {_labels(**_node("n")): 0.0}, hours=at / 60) for at in range(35, 121, 5)]
    complaints = _complaints(tmp_path, given, *expected)
    assert not complaints, complaints


def test_clusters_are_kept_apart(tmp_path: Path) -> None:
    """A federated server: nodes of the same name. Usage was recorded in each cluster; the label is from outside."""
    given: list[Series] = []
    expected_share: dict[str, float] = {}
    spread: dict[str, float] = {}
    for cluster, level in (("eu-1", 2.0), ("us-1", 6.0)):
        where = {"cluster": cluster}
        given += [
            _recorded("forecast:node_usage", _half_hours([level] * 4), **_node("n"), **where),
            _recorded("forecast:node_usage", _half_hours([2 * level] * 4), **_node("m"), **where),
            _recorded("forecast_node_capacity", _half_hours([20.0] * 4), **_node("n"), **where),
            _recorded("forecast_node_capacity", _half_hours([20.0] * 4), **_node("m"), **where),
            _recorded("forecast_node_model_usage", _half_hours([3.0] * 4), **_node("n", quantile="0.95"), **where),
            _recorded("forecast:pod_usage", [level] * 24, namespace="shop", pod="cart-0", resource="cpu", **where),
            _recorded("forecast:pod_info", [1.0] * 24, **_info("cart-0", "StatefulSet", "cart"), **where),
        ]
        expected_share |= {_labels(**_node("n"), **where): level / 20, _labels(**_node("m"), **where): level / 10}
        spread[_labels(resource="cpu", **where)] = 1 / 3  # peaks of x and 2x: half of x over one and a half
    service = {"namespace": "shop", "kind": "StatefulSet", "name": "cart", "resource": "cpu"}
    complaints = _complaints(
        tmp_path,
        given,
        _is("forecast:node_usage_share", expected_share, hours=2),
        _is("forecast:node_peak_spread", spread, hours=2),
        _is(
            "forecast:nodes_within_bound",
            {_labels(resource="cpu", cluster="eu-1"): 1, _labels(resource="cpu", cluster="us-1"): 0},
            hours=2,
        ),
        _is(
            "forecast:service_usage",
            {_labels(**service, cluster="eu-1"): 2, _labels(**service, cluster="us-1"): 6},
            hours=2,
        ),
    )
    assert not complaints, complaints


def _info(pod: str, kind: str, name: str, *, namespace: str = "shop", uid: str = "") -> dict[str, str]:
    return {
        "namespace": namespace,
        "pod": pod,
        "uid": uid or f"uid-of-{pod}",
        "node": "n1",
        "created_by_kind": kind,
        "created_by_name": name,
    }


# pod, its controller, and the controller of that: None = kube-state-metrics does not say, NO_OWNER = it has none
PODS: Final[tuple[tuple[str, Owner, Owner | None], ...]] = (
    ("cart-7d9c5b6f4-x2x7p", Owner("ReplicaSet", "cart-7d9c5b6f4"), None),
    ("web-5d4f8-abcde", Owner("ReplicaSet", "web-5d4f8"), Owner("Rollout", "web")),
    ("api-7d9c5b6f4-x2x7p", Owner("ReplicaSet", "api-7d9c5b6f4"), Owner("Deployment", "api")),
    ("bare-7d9c5b6f4-x2x7p", Owner("ReplicaSet", "bare-7d9c5b6f4"), NO_OWNER),
    ("hand-made-x2x7p", Owner("ReplicaSet", "hand-made"), None),  # "made" has vowels: no hash
    ("db-0", Owner("StatefulSet", "db"), None),
    ("nightly-29384760-7xkqz", Owner("Job", "nightly-29384760"), None),
    ("old-1763812800-7xkqz", Owner("Job", "old-1763812800"), None),  # seconds, before Kubernetes 1.21
    ("dated-20261121-7xkqz", Owner("Job", "dated-20261121"), None),  # a date that somebody wrote
    ("stamped-2026112104-7xkqz", Owner("Job", "stamped-2026112104"), None),
    ("edge-25999999-7xkqz", Owner("Job", "edge-25999999"), None),
    ("edge-26000000-7xkqz", Owner("Job", "edge-26000000"), None),
    ("edge-99999999-7xkqz", Owner("Job", "edge-99999999"), None),
    ("edge-1399999999-7xkqz", Owner("Job", "edge-1399999999"), None),
    ("edge-1400000000-7xkqz", Owner("Job", "edge-1400000000"), None),
    ("edge-1999999999-7xkqz", Owner("Job", "edge-1999999999"), None),
    ("by-hand-29384760-7xkqz", Owner("Job", "by-hand-29384760"), NO_OWNER),
    ("weekly-x-7xkqz", Owner("Job", "weekly-x"), Owner("CronJob", "weekly")),
    ("once-7xkqz", Owner("Job", "once"), NO_OWNER),
    ("alone", NO_OWNER, None),
    ("alone-7d9c5b6f4", NO_OWNER, None),
    ("rc-1-abcde", Owner("ReplicationController", "rc-1"), None),
    ("train-worker-0", Owner("PyTorchJob", "train"), None),
    ("agent-x2x7p", Owner("DaemonSet", "agent"), None),
    ("etcd-n1", Owner("Node", "n1"), None),
)


def _owner_series(pod: str, owner: Owner, of_owner: Owner | None) -> list[Series]:
    found = [_recorded("forecast:pod_info", [1.0] * 12, **_info(pod, owner.kind or "<none>", owner.name or "<none>"))]
    if of_owner is not None:
        label, metric = {
            "ReplicaSet": ("replicaset", "kube_replicaset_owner"),
            "Job": ("job_name", "kube_job_owner"),
        }[owner.kind]
        is_owned = of_owner != NO_OWNER
        labels = {
            "namespace": "shop",
            label: owner.name,
            "owner_kind": of_owner.kind or "<none>",
            "owner_name": of_owner.name or "<none>",
            "owner_is_controller": "true" if is_owned else "<none>",
        }
        found += [_recorded(metric, [1.0] * 12, **labels, instance=replica) for replica in "ab"]
        if is_owned:  # who merely ties its lifetime to it
            other = {**labels, "owner_kind": "Elsewhere", "owner_name": "x", "owner_is_controller": "false"}
            found.append(_recorded(metric, [1.0] * 12, **other, instance="a"))
    return found


def test_a_pods_service_is_the_one_that_everybody_else_finds(tmp_path: Path) -> None:
    keys = {pod: service_of_pod("shop", pod, owner, owner_of_owner=of_owner) for pod, owner, of_owner in PODS}
    assert keys["etcd-n1"] == ServiceKey("shop", "StaticPod", "etcd")
    expected = {
        _labels(namespace="shop", pod=pod, kind=key.kind, name=key.name): 1.0
        for pod, key in keys.items()
        if not key.belongs_to_node
    }
    assert len(expected) == len(PODS) - 2
    given = [one for pod in PODS for one in _owner_series(*pod)]
    complaints = _complaints(tmp_path, given, _is("forecast:pod_service", expected, hours=0.5))
    assert not complaints, complaints


def test_usage_and_peaks_of_services(tmp_path: Path) -> None:
    """Three pods of a Deployment in two ReplicaSets, and a DaemonSet's; cpu and memory."""
    given = []
    levels = {"cart-7d9c5b6f4-aaaaa": 1.0, "cart-7d9c5b6f4-bbbbb": 2.0, "cart-5f6d7c8b9-ccccc": 6.0}
    for pod, level in levels.items():
        owner = pod.rsplit("-", 1)[0]
        given.append(_recorded("forecast:pod_info", [1.0] * 18, **_info(pod, "ReplicaSet", owner)))
        for replica in "ab":  # two Prometheus replicas
            which = {"namespace": "shop", "pod": pod, "prometheus_replica": replica}
            given.append(
                _recorded("forecast:pod_usage", _half_hours([level, 3 * level, level]), **which, resource="cpu")
            )
        given.append(
            _recorded("forecast:pod_usage", [1e8] * 18, namespace="shop", pod=pod, resource="memory"),
        )
    # Made again under its name within the look-back: known twice, and one pod all the same.
    given.append(
        _recorded(
            "forecast:pod_info", [1.0] * 18, **_info("cart-7d9c5b6f4-aaaaa", "ReplicaSet", "cart-7d9c5b6f4", uid="2")
        )
    )
    given.append(_recorded("forecast:pod_info", [1.0] * 18, **_info("agent-x", "DaemonSet", "agent")))
    given.append(_recorded("forecast:pod_usage", [1.0] * 18, namespace="shop", pod="agent-x", resource="cpu"))
    cart = {"namespace": "shop", "kind": "Deployment", "name": "cart"}
    cpu, memory = _labels(**cart, resource="cpu"), _labels(**cart, resource="memory")
    expected = (
        _is("forecast:service_usage", {cpu: 9, memory: 3e8}, hours=1.5),
        _is("forecast:service_usage:30m", {cpu: 18, memory: 3e8}, hours=1.25),
        _is("forecast:service_peak:1d", {cpu: 27, memory: 3e8}, hours=1.5),
        _is("forecast:service_pod_usage", {cpu: 3, memory: 1e8}, hours=1.5),
        _is("forecast:service_pod_peak:1d", {cpu: 9, memory: 1e8}, hours=1.5),
    )
    complaints = _complaints(tmp_path, given, *expected)
    assert not complaints, complaints
