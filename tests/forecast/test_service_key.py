"""The service of a pod: named cases, from kube-state-metrics labels and from API objects alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.errors import InputError
from forecast.service_key import (
    NO_OWNER,
    Owner,
    ServiceKey,
    owner_from_labels,
    owner_from_references,
    service_of_pod,
)


@dataclass(frozen=True)
class Case:
    """What is known of a pod, and its service."""

    name: str
    pod: str
    owner: Owner | None
    service: str
    owner_of_owner: Owner | None = None
    labels: Mapping[str, str] | None = None


CASES = [
    Case("bare pod", "debug", NO_OWNER, "Pod/debug"),
    Case("bare pod, owner never looked up", "debug", None, "Pod/debug"),
    Case("stateful set", "db-0", Owner("StatefulSet", "db"), "StatefulSet/db"),
    Case("stateful set with a hash-like name", "db-6b4f8-0", Owner("StatefulSet", "db-6b4f8"), "StatefulSet/db-6b4f8"),
    Case("daemon set", "fluent-bit-x7k2p", Owner("DaemonSet", "fluent-bit"), "DaemonSet/fluent-bit"),
    Case("custom resource", "etl-a1", Owner("Workflow", "etl"), "Workflow/etl"),
    # ReplicaSets
    Case(
        "deployment by its ReplicaSet's owner",
        "cart-5d9f7c6b48-x2x4z",
        Owner("ReplicaSet", "cart-5d9f7c6b48"),
        "Deployment/cart",
        owner_of_owner=Owner("Deployment", "cart"),
    ),
    Case(
        "rollout by its ReplicaSet's owner",
        "cart-5d9f7c6b48-x2x4z",
        Owner("ReplicaSet", "cart-5d9f7c6b48"),
        "Rollout/cart",
        owner_of_owner=Owner("Rollout", "cart"),
    ),
    Case(
        "deployment by pod-template-hash",
        "cart-5d9f7c6b48-x2x4z",
        Owner("ReplicaSet", "cart-5d9f7c6b48"),
        "Deployment/cart",
        labels={"app": "cart", "pod-template-hash": "5d9f7c6b48"},
    ),
    Case(
        "rollout by its own hash label",
        "cart-5d9f7c6b48-x2x4z",
        Owner("ReplicaSet", "cart-5d9f7c6b48"),
        "Rollout/cart",
        labels={"rollouts-pod-template-hash": "5d9f7c6b48"},
    ),
    Case(
        "old decimal hash is only known from the label",
        "cart-1301873135-abc",
        Owner("ReplicaSet", "cart-1301873135"),
        "Deployment/cart",
        labels={"pod-template-hash": "1301873135"},
    ),
    Case("deployment by the hash's shape", "c-5d9f7c6b48-x", Owner("ReplicaSet", "cart-5d9f7c6b48"), "Deployment/cart"),
    Case("short hash", "cart-7c6b4-x2x4z", Owner("ReplicaSet", "cart-7c6b4"), "Deployment/cart"),
    Case(
        "only the last segment is a hash",
        "a-x",
        Owner("ReplicaSet", "shop-bff-v2-66c4d7b9f"),
        "Deployment/shop-bff-v2",
    ),
    Case("a word with vowels is no hash", "web-canary-x", Owner("ReplicaSet", "web-canary"), "ReplicaSet/web-canary"),
    Case("eleven characters are no hash", "w", Owner("ReplicaSet", "web-bcdfghjklmn"), "ReplicaSet/web-bcdfghjklmn"),
    Case(
        "bare ReplicaSet that looks owned, owner looked up",
        "web-db-x2x4z",
        Owner("ReplicaSet", "web-db"),
        "ReplicaSet/web-db",
        owner_of_owner=NO_OWNER,
    ),
    Case(
        "bare ReplicaSet that looks owned, labels known",
        "web-db-x2x4z",
        Owner("ReplicaSet", "web-db"),
        "ReplicaSet/web-db",
        labels={"app": "web"},
    ),
    Case(
        "OpenShift deployment config",
        "web-3-x2x4z",
        Owner("ReplicationController", "web-3"),
        "DeploymentConfig/web",
        owner_of_owner=Owner("DeploymentConfig", "web"),
    ),
    # Jobs
    Case("cron job, minutes", "b-28400000-x", Owner("Job", "backup-28400000"), "CronJob/backup"),
    Case("cron job, unix seconds", "b-1609459200-x", Owner("Job", "backup-1609459200"), "CronJob/backup"),
    Case(
        "cron job by its Job's owner, any name",
        "b-manual-x",
        Owner("Job", "backup-manual"),
        "CronJob/backup",
        owner_of_owner=Owner("CronJob", "backup"),
    ),
    Case("plain job", "migrate-x", Owner("Job", "migrate"), "Job/migrate"),
    Case("job with a date", "migrate-20261121-x", Owner("Job", "migrate-20261121"), "Job/migrate-20261121"),
    Case("job with date and hour", "m-x", Owner("Job", "migrate-2026112104"), "Job/migrate-2026112104"),
    Case("job with nine digits", "m-x", Owner("Job", "migrate-284000001"), "Job/migrate-284000001"),
    Case(
        "plain job that looks like a cron job's",
        "b-28400000-x",
        Owner("Job", "backup-28400000"),
        "Job/backup-28400000",
        owner_of_owner=NO_OWNER,
    ),
    # Static pods: the kubelet names the mirror <pod>-<node>, and node names may hold dots and dashes.
    Case(
        "mirror pod", "kube-proxy-ip-10-0-0-7.internal", Owner("Node", "ip-10-0-0-7.internal"), "StaticPod/kube-proxy"
    ),
    Case("mirror pod named otherwise", "etcd", Owner("Node", "cp-1"), "StaticPod/etcd"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_service_of_a_pod(case: Case) -> None:
    key = service_of_pod("shop", case.pod, case.owner, owner_of_owner=case.owner_of_owner, pod_labels=case.labels)
    assert key == ServiceKey.from_columns("shop", case.service)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_metrics_and_api_objects_name_the_same_controller(case: Case) -> None:
    owner = case.owner or NO_OWNER
    kind, name = owner.kind or "<none>", owner.name or "<none>"
    reference = {"kind": owner.kind, "name": owner.name, "controller": True}
    assert owner_from_labels({"created_by_kind": kind, "created_by_name": name}) == owner
    assert owner_from_labels({"owner_kind": kind, "owner_name": name, "owner_is_controller": "true"}) == owner
    assert owner_from_references([] if owner == NO_OWNER else [reference]) == owner


def test_labels_that_name_no_owner_leave_it_open() -> None:
    assert owner_from_labels({"pod": "cart-x"}) is None
    assert owner_from_labels({"created_by_kind": "", "created_by_name": ""}) == NO_OWNER


def test_only_the_controlling_reference_counts() -> None:
    references: list[Mapping[str, object]] = [
        {"kind": "ConfigMap", "name": "lease", "controller": False},
        {"kind": "Secret", "name": "other"},
        {"kind": "ReplicaSet", "name": "cart-5d9f7c6b48", "controller": True},
    ]
    assert owner_from_references(references) == Owner("ReplicaSet", "cart-5d9f7c6b48")
    assert owner_from_references(references[:2]) == NO_OWNER
    assert owner_from_references(None) == NO_OWNER


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)


@given(namespace=NAMES, kind=st.sampled_from(["Deployment", "StatefulSet", "Pod"]), name=NAMES)
def test_parse_undoes_str(namespace: str, kind: str, name: str) -> None:
    key = ServiceKey(namespace, kind, name)
    assert ServiceKey.parse(str(key)) == key
    assert ServiceKey.from_columns(key.namespace, key.service) == key


@given(deployment=NAMES, template_hash=st.text("bcdfghjklmnpqrstvwxz2456789", min_size=5, max_size=10))
def test_every_hash_kubernetes_can_write_is_recognised(deployment: str, template_hash: str) -> None:
    owner = Owner("ReplicaSet", f"{deployment}-{template_hash}")
    assert service_of_pod("shop", "pod", owner) == ServiceKey("shop", "Deployment", deployment)


def test_keys_sort_by_namespace_then_kind_then_name() -> None:
    keys = [ServiceKey("b", "A", "a"), ServiceKey("a", "B", "a"), ServiceKey("a", "A", "b"), ServiceKey("a", "A", "a")]
    assert [str(key) for key in sorted(keys)] == ["a/A/a", "a/A/b", "a/B/a", "b/A/a"]


@pytest.mark.parametrize("text", ["cart", "shop/cart", "shop/Deployment/cart/1", "shop//cart", "/Deployment/cart", ""])
def test_malformed_keys_are_refused_with_the_form_to_write(text: str) -> None:
    with pytest.raises(InputError, match=r"namespace/Kind/name|shop/Deployment/cart"):
        ServiceKey.parse(text)


def test_daemons_and_static_pods_belong_to_the_node() -> None:
    assert ServiceKey("kube-system", "DaemonSet", "fluent-bit").belongs_to_node
    assert ServiceKey("kube-system", "StaticPod", "etcd").belongs_to_node
    assert not ServiceKey("shop", "Deployment", "cart").belongs_to_node


def test_pods_of_jobs_and_cron_jobs_run_to_completion() -> None:
    kinds = ("Job", "CronJob", "Deployment", "StatefulSet", "DaemonSet", "Pod", "Workflow")
    assert [k for k in kinds if ServiceKey("shop", k, "x").runs_to_completion] == ["Job", "CronJob"]
