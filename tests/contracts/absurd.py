"""Objects that a user may write, and what nobody would write into them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from kube.objects.eviction_annotations import EVICTION_ANNOTATIONS
from kube.objects.objects import ANNOTATION_PREFIX, SHARING_PLUGIN_PREFIX
from testing.servers.kustomize import DEPLOY

Json = Any

VALUES: Final[tuple[Json, ...]] = (
    "", "1e99999", "-1", "NaN", "1e18", "x" * 300, "9" * 5000, "../../x", "\0", "999999999h", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-12:00", "\N{ARABIC-INDIC DIGIT THREE}", "\ud800", "[" * 3000, '{"c":{"cpu":1e308}}', "true",
    -1, 0, 0.5, 1e308, 2**63, 10**30, True, None, [], {}, [None], ["a"], {"a": None}, {"a": "b"},
)  # fmt: skip
"""Huge, negative, no number, nested, another type, empty, a lone surrogate."""
_KEYS: Final = (  # noqa: SIM905
    "policy virtual-request queue deadline latest-start expected-run gpu-milli gpu-index gpu-type min-replicas tide "
    "checkpoint-grace rebalance rebalance-hours reservation passed-on machine-group borrow templates opt-out offline "
    "colocate place move-by-surge surged-for original-requests original-requests-proof pod-group min-available"
).split()
ANNOTATIONS: Final = {
    **{f"{ANNOTATION_PREFIX}{key}": "1" for key in _KEYS},
    **dict.fromkeys(EVICTION_ANNOTATIONS, "true"),
    f"{SHARING_PLUGIN_PREFIX}IDX": "0",
    "deployment.kubernetes.io/desired-replicas": "2",
}
_TIME: Final = "2026-11-21T16:00:00Z"
_METADATA: Final[Json] = {
    "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": {"app": "a"},
    "annotations": ANNOTATIONS, "creationTimestamp": _TIME,
    "ownerReferences": [{"kind": "ReplicaSet", "name": "a-7d9f", "uid": "rs", "controller": True}],
}  # fmt: skip
_RESOURCES: Final[Json] = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
_SELECTOR: Final[Json] = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
}
_TERM: Final[Json] = {"labelSelector": _SELECTOR, "topologyKey": "zone", "namespaces": ["x"]}
_NODE_TERM: Final[Json] = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}
_SPEC: Final[Json] = {
    "nodeName": "n", "schedulerName": "forecast-scheduler", "priority": 5, "preemptionPolicy": "Never",
    "containers": [{"name": "main", "image": "i", "resources": _RESOURCES, "ports": [{"hostPort": 80}]}],
    "initContainers": [{"name": "side", "resources": _RESOURCES, "restartPolicy": "Always"}],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "emptyDir": {}}],
    "overhead": {"cpu": "1"}, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "labelSelector": _SELECTOR, "minDomains": 2}],
    "affinity": {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]}},
    },
    "resourceClaims": [{"name": "g", "resourceClaimName": "c"}], "schedulingGroup": {"podGroupName": "g"},
}  # fmt: skip
_TEMPLATE: Final[Json] = {"metadata": {"labels": {"a": "b"}, "annotations": ANNOTATIONS}, "spec": _SPEC}
_DEVICES: Final[Json] = {
    "requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, "selectors": [{"cel": {"expression": "true"}}]}}
    ],
    "constraints": [{"requests": ["r"], "matchAttribute": "x/y"}],
}


def _made(kind: str, spec: Json) -> Json:
    return {"kind": kind, "metadata": _METADATA, "spec": spec}


def honest() -> list[Json]:
    """One object of each kind; those of our own resources are the examples that are shipped."""
    found = [
        _made("Pod", _SPEC), _made("ReplicaSet", {}), _made("Job", {"parallelism": 2, "template": _TEMPLATE}),
        _made("CronJob", {"schedule": "*/5 * * * *", "timeZone": "UTC", "jobTemplate": {"spec": {"parallelism": 1}}}),
        _made("PodDisruptionBudget", {"minAvailable": "50%", "selector": _SELECTOR}),
        _made("PersistentVolumeClaim", {"accessModes": ["ReadWriteOnce"], "resources": _RESOURCES}),
        _made("ResourceClaim", {"devices": _DEVICES}),
    ]  # fmt: skip
    for file in sorted((DEPLOY / "crds").rglob("examples/*.yaml")):
        found += [one for one in yaml.safe_load_all(file.read_text()) if one and one["kind"] != "Deployment"]
    return found


@st.composite
def absurd(draw: st.DrawFn, made: Json) -> bytes:
    """The object as JSON, with one value in place of whatever stood there."""
    path = draw(st.sampled_from(list(_paths(made))))
    return json.dumps(_with(made, path, draw(st.sampled_from(VALUES)))).encode()


def _paths(made: Json, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if at:
        yield at
    for key in made if isinstance(made, dict) else range(len(made)) if isinstance(made, list) else ():
        yield from _paths(made[key], (*at, key))


def _with(made: Json, path: tuple[str | int, ...], value: Json) -> Json:
    changed = copy.deepcopy(made)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed
