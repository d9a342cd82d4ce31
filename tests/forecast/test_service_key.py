"""The service of a pod: named cases, from kube-state-metrics labels and from API objects alike."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from forecast.service_key import (
    NO_OWNER,
    Owner,
    ServiceKey,
    owner_from_labels,
    owner_from_references,
    service_of_pod,
)

# What is known: the pod, its owner, and of the owner its own owner or of the pod its labels.
CASES = [
    pytest.param("debug", NO_OWNER, None, None, "Pod/debug", id="bare pod"),
    pytest.param("debug", None, None, None, "Pod/debug", id="owner never looked up"),
    *(
        pytest.param(pod, Owner(kind, name), None, None, f"{kind}/{name}", id=about)
        for pod, kind, name, about in (
            ("db-0", "StatefulSet", "db", "stateful set"),
            ("db-6b4f8-0", "StatefulSet", "db-6b4f8", "stateful set with a hash-like name"),
            ("fluent-bit-x7k2p", "DaemonSet", "fluent-bit", "daemon set"),
            ("etl-a1", "Workflow", "etl", "custom resource"),
            ("web-canary-x", "ReplicaSet", "web-canary", "a word with vowels is no hash"),
            ("w", "ReplicaSet", "web-bcdfghjklmn", "eleven characters are no hash"),
            ("migrate-x", "Job", "migrate", "plain job"),
            ("migrate-20261121-x", "Job", "migrate-20261121", "job with a date"),
            ("m-x", "Job", "migrate-2026112104", "job with date and hour"),
            ("m-x", "Job", "migrate-284000001", "job with nine digits"),
        )
    ),
    *(
        pytest.param("pod", Owner(kind, name), None, None, service, id=about)
        for kind, name, service, about in (
            ("ReplicaSet", "cart-5d9f7c6b48", "Deployment/cart", "deployment by the hash's shape"),
            ("ReplicaSet", "cart-7c6b4", "Deployment/cart", "short hash"),
            ("ReplicaSet", "kube-dns-3092422022", "Deployment/kube-dns", "decimal hash of old releases"),
            ("ReplicaSet", "shop-bff-v2-66c4d7b9f", "Deployment/shop-bff-v2", "only the last segment is a hash"),
            ("Job", "backup-28400000", "CronJob/backup", "cron job, minutes"),
            ("Job", "backup-1609459200", "CronJob/backup", "cron job, unix seconds"),
        )
    ),
    *(
        pytest.param("pod", Owner(kind, name), Owner(*above), None, service, id=about)
        for kind, name, above, service, about in (
            ("ReplicaSet", "cart-5d9f7c6b48", ("Deployment", "cart"), "Deployment/cart", "deployment of a ReplicaSet"),
            ("ReplicaSet", "cart-5d9f7c6b48", ("Rollout", "cart"), "Rollout/cart", "rollout of a ReplicaSet"),
            ("ReplicaSet", "web-db", ("", ""), "ReplicaSet/web-db", "bare ReplicaSet that looks owned"),
            ("ReplicationController", "web-3", ("DeploymentConfig", "web"), "DeploymentConfig/web", "OpenShift"),
            ("Job", "backup-manual", ("CronJob", "backup"), "CronJob/backup", "cron job of a Job of any name"),
            ("Job", "backup-28400000", ("", ""), "Job/backup-28400000", "plain job that looks like a cron job's"),
        )
    ),
    *(
        pytest.param("pod", Owner("ReplicaSet", name), None, labels, service, id=about)
        for name, labels, service, about in (
            (
                "cart-5d9f7c6b48",
                {"app": "cart", "pod-template-hash": "5d9f7c6b48"},
                "Deployment/cart",
                "deployment by its hash label",
            ),
            ("cart-5d9f7c6b48", {"rollouts-pod-template-hash": "5d9f7c6b48"}, "Rollout/cart", "rollout by its own"),
            ("cart-1301873135", {"pod-template-hash": "1301873135"}, "Deployment/cart", "old decimal hash"),
            ("web-db", {"app": "web"}, "ReplicaSet/web-db", "labels without a hash"),
        )
    ),
    # The kubelet names the mirror <pod>-<node>, and node names may hold dots and dashes.
    pytest.param("kube-proxy-ip-7.x", Owner("Node", "ip-7.x"), None, None, "StaticPod/kube-proxy", id="mirror pod"),
    pytest.param("etcd", Owner("Node", "cp-1"), None, None, "StaticPod/etcd", id="mirror pod named otherwise"),
]


@pytest.mark.parametrize(("pod", "owner", "owner_of_owner", "labels", "service"), CASES)
def test_service_of_a_pod(
    pod: str, owner: Owner | None, owner_of_owner: Owner | None, labels: Mapping[str, str] | None, service: str
) -> None:
    key = service_of_pod("shop", pod, owner, owner_of_owner=owner_of_owner, pod_labels=labels)
    assert key == ServiceKey.from_columns("shop", service)


@pytest.mark.parametrize("owner", [NO_OWNER, Owner("ReplicaSet", "cart-5d9f7c6b48")])
def test_metrics_and_api_objects_name_the_same_controller(owner: Owner) -> None:
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
