"""Which new pods get our gate, beside which gates, and that no pod, however odd, raises."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from admission.advice.asked_advice import NewPod, asked_mode, gates_with_ours
from admission.webhook_settings import AdviceGateOptions
from base.excluded import ExcludedOptions
from placement.gate_exemptions import ADVICE, AdviceMode

OURS = {"name": ADVICE}
ASKS = {"app": "cart", ADVICE: "advise"}


def a_pod(labels: Any = ASKS, *, metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"generateName": "cart-", "labels": labels} | dict(metadata or {}), "spec": spec}


def _gates(
    pod: Mapping[str, Any],
    namespace: str = "shop",
    labels: Mapping[str, str] | None = None,
    **options: Any,
) -> list[Any] | None:
    return gates_with_ours(pod, namespace, labels, AdviceGateOptions(**options), ExcludedOptions())


def _owned_by(kind: Any, *, controller: Any = True) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": "Backup", "name": "b"}, {"kind": kind, "name": "x", "controller": controller}]}


@pytest.mark.parametrize(
    ("of_pod", "of_namespace", "of_policy", "setting", "mode"),
    [
        (None, None, AdviceMode.PREFER, AdviceMode.ADVISE, AdviceMode.PREFER),
        (None, None, AdviceMode.OFF, AdviceMode.ADVISE, AdviceMode.OFF),
        (None, None, None, AdviceMode.PREFER, AdviceMode.PREFER),
        (None, "advise", AdviceMode.PREFER, AdviceMode.OFF, AdviceMode.ADVISE),
        ("off", "advise", AdviceMode.PREFER, AdviceMode.OFF, AdviceMode.OFF),
        ("prefer", "off", AdviceMode.ADVISE, AdviceMode.OFF, AdviceMode.PREFER),
    ],
)
def test_label_namespace_policy_setting_in_this_order(
    of_pod: str | None,
    of_namespace: str | None,
    of_policy: AdviceMode | None,
    setting: AdviceMode,
    mode: AdviceMode,
) -> None:
    asked: list[NewPod] = []

    def by_policy(pod: NewPod) -> AdviceMode | None:
        asked.append(pod)
        return of_policy

    pod = a_pod({"app": "cart"} | ({} if of_pod is None else {ADVICE: of_pod}), metadata={"annotations": {"a": "b"}})
    labels = None if of_namespace is None else {ADVICE: of_namespace}
    assert asked_mode(pod, "shop", labels, AdviceGateOptions(unlabelled=setting), ExcludedOptions(), by_policy) is mode
    assert asked == [NewPod("shop", pod["metadata"]["labels"], {"a": "b"})]


@pytest.mark.parametrize(
    ("namespace", "pod"),
    [
        ("kube-system", a_pod()),
        ("kube-public", a_pod()),
        ("kube-node-lease", a_pod()),
        ("forecast-scheduler", a_pod()),
        ("shop", a_pod(metadata=_owned_by("DaemonSet"))),
        ("shop", a_pod(metadata=_owned_by("Node"))),
        ("shop", a_pod(metadata={"annotations": {"kubernetes.io/config.mirror": "8a2f"}})),
        ("shop", a_pod(hostNetwork=True)),
        ("shop", a_pod(nodeName="n1")),
        ("shop", a_pod(schedulerName="forecast-scheduler")),
        ("shop", a_pod(schedulerName="volcano")),
    ],
)
def test_pods_that_must_not_wait_are_not_held_whatever_their_labels_say(namespace: str, pod: dict[str, Any]) -> None:
    assert _gates(pod, namespace, {ADVICE: "advise"}, unlabelled=AdviceMode.ADVISE) is None


def test_only_a_pod_that_asks_is_held_as_the_settings_name_namespaces_and_schedulers() -> None:
    for value, gates in (("advise", [OURS]), ("prefer", None), ("off", None), ("true", None)):
        assert _gates(a_pod({ADVICE: value}), labels={ADVICE: "advise"}, unlabelled=AdviceMode.ADVISE) == gates
    assert _gates(a_pod({})) is None
    plain = a_pod(schedulerName="default-scheduler", nodeName="", hostNetwork=False, metadata=_owned_by("ReplicaSet"))
    assert _gates(plain) == _gates(a_pod(metadata=_owned_by("DaemonSet", controller=False))) == [OURS]
    assert _gates(a_pod(schedulerName="second"), scheduler_names=["second"]) == [OURS]
    assert _gates(a_pod(), scheduler_names=["second"]) is None


@pytest.mark.parametrize(
    ("excluded", "gates"),
    [
        ({"namespaces": ["shop"]}, None),
        ({"services": ["shop/cart"]}, None),
        ({"services": ["shop/Deployment/cart"]}, None),
        ({"namespaces": ["pay"], "services": ["shop/carts", "shop/StatefulSet/cart"]}, [OURS]),
    ],
)
def test_pods_of_excluded_services_get_no_advice_whatever_they_ask(
    excluded: dict[str, Any], gates: list[Any] | None
) -> None:
    owner = {"kind": "ReplicaSet", "name": "cart-5d4b", "controller": True}
    pod = a_pod({ADVICE: "advise", "pod-template-hash": "5d4b"}, metadata={"ownerReferences": [owner]})
    assert gates_with_ours(pod, "shop", None, AdviceGateOptions(), excluded=ExcludedOptions(**excluded)) == gates


def test_gates_of_others_are_kept_in_their_order_and_ours_is_added_once() -> None:
    others = [{"name": "kueue.x-k8s.io/admission"}, {"name": "b.io/quota", "later": "field"}]
    pod = a_pod(schedulingGates=others)
    before = deepcopy(pod)
    assert _gates(pod) == [*others, OURS]
    assert pod == before
    assert _gates(a_pod(schedulingGates=[*others, OURS])) is None
    assert _gates(a_pod(schedulingGates=[])) == [OURS]
    assert _gates(a_pod(schedulingGates=None)) == [OURS]


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {ADVICE: ["advise"]}},
        {"labels": {ADVICE: {}}, "annotations": {"kubernetes.io/config.mirror": []}},
        {"labels": [ADVICE], "ownerReferences": [[], "DaemonSet", {"controller": True, "kind": ["DaemonSet"]}]},
        {"ownerReferences": {"kind": "DaemonSet", "controller": True}},
    ],
)
def test_texts_that_are_none_say_nothing(metadata: dict[str, Any]) -> None:
    pod = a_pod({}, metadata=metadata)
    assert _gates(pod, labels={}) is None
    assert _gates(pod, labels={ADVICE: "advise"}) == [OURS]
