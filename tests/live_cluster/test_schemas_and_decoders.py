"""Whatever the API server takes by our definitions we read, or the object says why not: neither can drift.

Each field of an example gets what its schema allows at the edges, and what people write to do harm; the server decides.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
import yaml

from admission.templates.template_decoding import BINDINGS, NODE_CONFIGS, POD_CONFIGS
from kube.decoding.watched_kinds import REFUSED, UndecodableObject, Watched
from placement.reservations.watched_plans import WATCHED_PLANS
from placement.reservations.watched_reservations import WATCHED_RESERVATIONS
from rebalancer.execution.plan_wire import DECODER
from scheduler.gangs.group_decoding import POD_GROUPS
from tenants.elastic_quota import WATCHED_QUOTAS
from testing.processes.scorer_process import ROOT
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.live_cluster.custom_resources import CustomResources

Manifest = dict[str, Any]
CRDS: Final = ROOT / "deploy/crds"
NAMES: Final = ("app", "../../x", "a" * 253, "x" * 400, "A_b", "ä", "", "a/b", "a/b/c", "a b", "night-tomorrow")
QUANTITIES: Final = (
    "1", 0, 2**62, -1, "1e99999", "1e9", "9E", "9" * 23, "9" * 40, "0." + "9" * 30, ".5", "5.", "1e1.5", "-1", "1Ki",
    "1k", "0x1", "１",
)  # fmt: skip
DURATIONS: Final = (
    "999999999h", "9999h", "999d", "366d", "0s", "1h30m", "1.5h", "99999999s", "9999h" * 6, "999.999999999d" * 2, "1w",
    "1", "-1h",
)  # fmt: skip
TIMES: Final = (
    "2026-05-19T01:00:00Z", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    "2026-05-19T01:00:00.123456789+14:00", "2026-12-31T23:59:60Z", "2026-05-19t01:00:00z", "2026-02-30T00:00:00Z",
    "soon", "2026-05-19T01:00:00+23:59", "2026-05-19T24:00:00Z",
)  # fmt: skip
NUMBERS: Final = (0, 1, -1, 499, 500, 2**31 - 1, 2**31, 2**53, 2**62, 1e9, 1e300, 0.1, -0.5)
OTHERS: Final[tuple[Any, ...]] = ("", "on", True, None, [], {}, "x" * 5000, [{}], {"a": {}}, {"cpu": {}}, [None])

EXAMPLES: Final[Mapping[str, Manifest]] = {
    "reservations": {
        "owners": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        "resources": {"cpu": "1"}, "lifetime": "15m", "node": "a", "schedulerName": "s",
    },
    "templates": {
        "owners": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}, "annotations": {"a": "b"}},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 1}], "priority": 1,
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
                ],
            },
        },
    },
    "podgroups": {"minMember": 2, "scheduleTimeoutSeconds": 3, "minResources": {"cpu": "1"}},
    "elasticquotas": {"min": {"cpu": "1"}, "max": {"cpu": 4}},
    "rebalanceplans": {
        "createdAt": "2026-05-19T01:00:00Z", "trigger": "night", "mode": "on", "configured": "on",
        "startBefore": "2026-05-19T05:00:00Z",
        "moves": [
            {"namespace": "n", "pod": "p", "uid": "u", "service": "Deployment/c", "from": "a", "to": "b", "reason": "r",
             "gain": 1.5, "partner": 0, "surge": True}
        ],
        "predicted": {"hotBefore": 1, "hotAfter": 0, "riskBefore": 1, "riskAfter": 0, "heatBefore": 1.0,
                      "heatAfter": 0.5, "mostGain": 1.0, "gain": 1.0, "horizonHours": 24.0},
    },
    "nodeschedulerconfigs": {
        "parameters": [{"name": "pool", "string": {"default": "a", "pattern": "[a-z]*"}}],
        "required": [{"matchExpressions": [{"key": "pool", "operator": "In", "valuesFrom": ["pool"]}]}],
    },
    "podschedulerconfigs": {
        "podAntiAffinity": {"required": [{"topologyKey": "zone", "matchLabelKeys": ["app"],
                                          "namespaceSelector": {"matchLabels": {"a": "b"}}}]},
    },
    "schedulerconfigbindings": {
        "template": {"kind": "NodeSchedulerConfig", "name": "a"}, "priority": 1, "onConflict": "Merge",
        "pods": {"namespaces": ["a"], "selector": {"matchLabels": {"a": "b"}}},
        "arguments": [{"name": "pool", "string": "a"}],
    },
}  # fmt: skip


def _has_problem(watched: Watched[Any]) -> Callable[[bytes], str]:
    return lambda body: watched.decoded(body)[0].problem


def _of_plan(body: bytes) -> str:
    """The rebalancer leaves out and names a plan that it cannot read; parts that place pods read all plans."""
    WATCHED_PLANS.decoded(body)
    try:
        DECODER.decode(body)
    except REFUSED as error:
        return str(error)
    return ""


KINDS: Final[Mapping[str, tuple[str, str, Callable[[bytes], str]]]] = {
    "reservations": ("forecast-scheduler.io", "Reservation", _has_problem(WATCHED_RESERVATIONS)),
    "templates": ("forecast-scheduler.io", "Reservation", _has_problem(WATCHED_RESERVATIONS)),
    "podgroups": ("scheduling.x-k8s.io", "PodGroup", _has_problem(POD_GROUPS)),
    "elasticquotas": ("scheduling.x-k8s.io", "ElasticQuota", _has_problem(WATCHED_QUOTAS)),
    "rebalanceplans": ("forecast-scheduler.io", "RebalancePlan", _of_plan),
    "nodeschedulerconfigs": ("forecast-scheduler.io", "NodeSchedulerConfig", _has_problem(NODE_CONFIGS)),
    "podschedulerconfigs": ("forecast-scheduler.io", "PodSchedulerConfig", _has_problem(POD_CONFIGS)),
    "schedulerconfigbindings": ("forecast-scheduler.io", "SchedulerConfigBinding", _has_problem(BINDINGS)),
}
SAY_SO: Final = {"reservations", "templates", "elasticquotas", "rebalanceplans"}
"""What their schema cannot refuse their status or report says; of the others it refuses all that we cannot read.
The API server takes [null] as a date-time."""

CLUSTER_SCOPED: Final = {"rebalanceplans", "nodeschedulerconfigs", "podschedulerconfigs", "schedulerconfigbindings"}


@pytest.fixture(scope="module")
def resources(plane: ControlPlane) -> Iterator[CustomResources]:
    with CustomResources(plane) as resources:
        resources.install()
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for plural in ("reservations", "rebalanceplans", "podgroups", "elasticquotas"):
            definition = yaml.safe_load((CRDS / plural / f"{plural}.yaml").read_text())
            answer = resources.request("POST", path, definition)
            assert (answer.status, answer.warnings) == (201, ()), answer.message
        assert eventually(lambda: all(resources.request("GET", _path(kind)).status == 200 for kind in KINDS))
        yield resources


def _path(kind: str) -> str:
    group, plural = KINDS[kind][0], "reservations" if kind == "templates" else kind
    of = "" if kind in CLUSTER_SCOPED else "namespaces/default/"
    return f"/apis/{group}/v1alpha1/{of}{plural}"


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all fields and entries of an example."""
    yield at
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in entries:
        yield from _leaves(below, (*at, key))


def _with(spec: Manifest, at: tuple[Any, ...], value: Any) -> Manifest:
    made: Any = copy.deepcopy({"spec": spec})
    target = made
    for key in ("spec", *at)[:-1]:
        target = target[key]
    target[("spec", *at)[-1]] = value
    return dict(made)


def _manifests(kind: str) -> list[Manifest]:
    group, name, _ = KINDS[kind]
    values = [*NAMES, *QUANTITIES, *DURATIONS, *TIMES, *NUMBERS, *OTHERS]
    made = [_with(EXAMPLES[kind], at, value) for at in _leaves(EXAMPLES[kind]) for value in values]
    chosen = random.Random(7).sample(made, min(len(made), 600))
    head = {"apiVersion": f"{group}/v1alpha1", "kind": name}
    return [
        {**head, "metadata": {"name": f"x{number}", "namespace": "default"} if kind not in CLUSTER_SCOPED else
         {"name": f"x{number}"}, **one}
        for number, one in enumerate([{"spec": EXAMPLES[kind]}, *chosen])
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_api_server_accepts_is_read_or_says_why_not(kind: str, resources: CustomResources) -> None:
    manifests, read = _manifests(kind), KINDS[kind][2]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda one: resources.request("POST", f"{_path(kind)}?dryRun=All", one), manifests))
    assert answers[0].status == 201, answers[0].message
    accepted = [answer.body for answer in answers if answer.status == 201]
    assert len(accepted) > 10
    unread, problems = [], set()
    for body in accepted:
        try:
            problems.add(read(json.dumps(body).encode()))
        except (UndecodableObject, ValueError) as error:
            unread.append(f"{error}: {json.dumps(body['spec'])[:500]}")
    assert unread == []
    assert (len(problems) > 1) == (kind in SAY_SO), problems
