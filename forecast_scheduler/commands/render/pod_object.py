"""The Pod object that the user names: a manifest, the pod template of a workload, or a pod of a cluster. As it is
written, since templates are rendered from the JSON that admission sees.

Pods of a workload are given the names, labels and owner that its controller will give them, as far as bindings can see
them: the owner chooses among bindings, and so may labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from base.errors import InputError
from cluster.tables.cluster_file import objects_of_cluster
from kube.decoding.object_files import ObjectInFile, objects_of_path

Object = Mapping[str, Any]

_HASH: Final = "5d9c7b6f4d"  # stands for the pod-template-hash, which only the controller knows
_SUFFIX: Final = "x2x4z"


@dataclass(frozen=True, slots=True)
class PodObject:
    """pod: the whole object; what: for people, such as "pod template of Deployment shop/cart"."""

    pod: dict[str, Any]
    what: str

    @property
    def namespace(self) -> str:
        """As the API server would fill it in."""
        return str(self.pod["metadata"].get("namespace") or "default")

    @property
    def name(self) -> str:
        """'' where the API server is to make one."""
        return str(self.pod["metadata"].get("name") or "")

    @property
    def is_stored(self) -> bool:
        """An API server gave it its UID: it was created already."""
        return bool(self.pod["metadata"].get("uid"))

    def created_anew(self) -> PodObject:
        """One that was stored, as if it came once more: it sits nowhere. Others as they are."""
        if not self.is_stored:
            return self
        spec = self.pod.get("spec")
        spec = {key: value for key, value in spec.items() if key != "nodeName"} if isinstance(spec, dict) else spec
        return PodObject({key: value for key, value in self.pod.items() if key != "status"} | {"spec": spec}, self.what)


@dataclass(frozen=True, slots=True)
class _Workload:
    """How pods of a kind of workload come about.

    template : where the pod template is
    owner    : kind and name of the pod's controller, by the workload's name
    suffix   : of the pod's name, after the controller's
    labels   : that the controller adds, by the names of controller and pod
    """

    template: tuple[str, ...]
    owner: Callable[[str], tuple[str, str]]
    suffix: str
    labels: Callable[[str, str], dict[str, str]]


def _none(owner: str, pod: str) -> dict[str, str]:
    return {}


def _of_job(owner: str, pod: str) -> dict[str, str]:
    return {"batch.kubernetes.io/job-name": owner, "job-name": owner}


_SPEC: Final = ("spec", "template")
_WORKLOADS: Final = {
    ("apps", "Deployment"): _Workload(
        _SPEC, lambda n: ("ReplicaSet", f"{n}-{_HASH}"), _SUFFIX, lambda o, p: {"pod-template-hash": _HASH}
    ),
    ("argoproj.io", "Rollout"): _Workload(
        _SPEC, lambda n: ("ReplicaSet", f"{n}-{_HASH}"), _SUFFIX, lambda o, p: {"rollouts-pod-template-hash": _HASH}
    ),
    ("apps", "ReplicaSet"): _Workload(_SPEC, lambda n: ("ReplicaSet", n), _SUFFIX, _none),
    ("", "ReplicationController"): _Workload(_SPEC, lambda n: ("ReplicationController", n), _SUFFIX, _none),
    ("apps", "StatefulSet"): _Workload(
        _SPEC,
        lambda n: ("StatefulSet", n),
        "0",
        lambda o, p: {"statefulset.kubernetes.io/pod-name": p, "apps.kubernetes.io/pod-index": "0"},
    ),
    ("apps", "DaemonSet"): _Workload(_SPEC, lambda n: ("DaemonSet", n), _SUFFIX, _none),
    ("batch", "Job"): _Workload(_SPEC, lambda n: ("Job", n), _SUFFIX, _of_job),
    # A CronJob names its Jobs by the minute they are due, minutes since 1970.
    ("batch", "CronJob"): _Workload(
        ("spec", "jobTemplate", "spec", "template"), lambda n: ("Job", f"{n}-29500000"), _SUFFIX, _of_job
    ),
}


def split_name(named: str) -> tuple[str, str]:
    """namespace/name. Raises InputError."""
    namespace, slash, name = named.partition("/")
    if not (slash and namespace and name) or "/" in name:
        raise InputError(f"pod {named!r} is neither a file nor namespace/name: write for instance shop/cart-7d9-x2x4z")
    return namespace, name


def pod_path(namespace: str, name: str) -> str:
    """Where the API server keeps a pod."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def pod_of_manifest(path: Path) -> PodObject:
    """The one Pod of a manifest, or the pod template of the one workload in it; what makes no pods is passed over."""
    found = [pod for one in objects_of_file(path) if (pod := _pod_of(one)) is not None]
    if len(found) == 1:
        return found[0]
    if not found:
        kinds = ", ".join(sorted({kind for _, kind in _WORKLOADS}))
        raise InputError(f"{path} holds no Pod and nothing that makes pods ({kinds}): pass the manifest of one")
    raise InputError(
        f"{path} holds {len(found)} that make pods ({', '.join(one.what for one in found)[:200]}): pass one"
    )


def pods_of_cluster_file(path: Path, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], PodObject]:
    """Pods of an exported cluster as they are stored, by namespace and name; those that are not in it are missing."""
    found: dict[tuple[str, str], PodObject] = {}
    for one in objects_of_cluster(path)[0]:
        pod = _pod_of(_plain(one)) if (one.group, one.kind) == ("", "Pod") else None
        if pod is not None and (pod.namespace, pod.name) in wanted:
            found[pod.namespace, pod.name] = pod
    return found


def objects_of_file(path: Path) -> Iterator[Object]:
    """All objects of a file in any form that is read (kube/decoding/object_files.py). Raises InputError."""
    try:
        objects = objects_of_path(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; pass a manifest that exists") from error
    except InputError as error:
        raise InputError(f"{path} cannot be read as a manifest: {error}") from error
    for one in objects:
        yield _plain(one)


def _plain(one: ObjectInFile) -> Object:
    """The object as values. Items of a PodList do not say what they are; then the list does."""
    said: dict[str, Any] = msgspec.json.decode(one.json)
    return said | {key: value for key, value in (("kind", one.kind), ("apiVersion", one.api_version)) if value}


def _pod_of(one: Object) -> PodObject | None:
    """None = it makes no pods."""
    kind, group = str(one.get("kind", "")), str(one.get("apiVersion", "")).rpartition("/")[0]
    metadata = one.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace, name = str(metadata.get("namespace") or "default"), str(metadata.get("name") or "")
    if (group, kind) == ("", "Pod"):
        filled = dict(one) | {
            "metadata": {"namespace": namespace} | {k: v for k, v in metadata.items() if v is not None}
        }
        return PodObject(filled, f"pod {namespace}/{name or metadata.get('generateName', '')}")
    workload = _WORKLOADS.get((group, kind))
    if workload is None:
        return None
    template: Any = one
    for key in workload.template:
        template = template.get(key) if isinstance(template, dict) else None
    if not isinstance(template, dict) or not name:
        missing = "name" if not name else f"pod template at {'.'.join(workload.template)}"
        raise InputError(f"{kind} {namespace}/{name} has no {missing}: pass the whole manifest")
    return PodObject(_made_by(workload, template, one, namespace, name), f"pod template of {kind} {namespace}/{name}")


def _made_by(workload: _Workload, template: Object, made: Object, namespace: str, name: str) -> dict[str, Any]:
    owner_kind, owner = workload.owner(name)
    pod = f"{owner}-{workload.suffix}"
    metadata = template.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    labels = metadata.get("labels")
    labels = (dict(labels) if isinstance(labels, dict) else {}) | workload.labels(owner, pod)
    reference = {
        "apiVersion": "batch/v1" if owner_kind == "Job" else made.get("apiVersion", "v1"),
        "kind": owner_kind,
        "name": owner,
        "uid": "00000000-0000-0000-0000-000000000000",
        "controller": True,
    }
    metadata |= {"name": pod, "namespace": namespace, "labels": labels, "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": "Pod"} | dict(template) | {"metadata": metadata}
