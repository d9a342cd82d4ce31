"""Who asks for advice, and which pods are never held whatever is asked."""

from __future__ import annotations

from typing import Any

import pytest

from base.excluded import ExcludedOptions
from forecast.service_key import ServiceKey
from placement.gate_exemptions import ADVICE, AdviceMode, labelled_mode, why_not_held


@pytest.mark.parametrize(
    ("pod", "namespace", "setting", "mode"),
    [
        (None, None, AdviceMode.ADVISE, AdviceMode.ADVISE),
        (None, "advise", AdviceMode.OFF, AdviceMode.ADVISE),
        (None, "off", AdviceMode.ADVISE, AdviceMode.OFF),
        ("advise", "off", AdviceMode.OFF, AdviceMode.ADVISE),
        ("off", "advise", AdviceMode.ADVISE, AdviceMode.OFF),
        # A mistake does not fall back to what the namespace or the settings say: nobody asked for that either.
        ("Advise", "advise", AdviceMode.ADVISE, AdviceMode.OFF),
        ("", "advise", AdviceMode.ADVISE, AdviceMode.OFF),
        (None, "yes", AdviceMode.ADVISE, AdviceMode.OFF),
    ],
)
def test_the_pod_decides_then_its_namespace_then_the_settings(
    pod: str | None, namespace: str | None, setting: AdviceMode, mode: AdviceMode
) -> None:
    of_pod = {"app": "cart"} | ({} if pod is None else {ADVICE: pod})
    of_namespace = {"team": "a"} | ({} if namespace is None else {ADVICE: namespace})
    assert labelled_mode(of_pod, of_namespace, setting) is mode


CART = ExcludedOptions(services=("shop/cart",))


def _why(namespace: str = "shop", **facts: Any) -> str:
    usual: dict[str, Any] = {
        "scheduler_name": "default-scheduler",
        "scheduler_names": ["default-scheduler", "second"],
        "excluded": ExcludedOptions(),
    }
    return why_not_held(namespace, **(usual | facts))


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"scheduler_name": "second"},
        {"owner_kind": "Job", "annotations": {"app": "x"}},
        {"excluded": ExcludedOptions(namespaces=("shop-2",), services=("shop/cart",))},
    ],
)
def test_usual_pods_may_be_held(facts: dict[str, Any]) -> None:
    assert _why(**facts) == ""


@pytest.mark.parametrize(
    ("namespace", "facts", "why"),
    [
        ("kube-system", {}, "pods of namespace kube-system are left alone"),
        ("forecast-scheduler", {}, "pods of namespace forecast-scheduler are left alone"),
        ("shop", {"excluded": ExcludedOptions(namespaces=("shop",))}, "excluded.namespaces has shop"),
        ("shop", {"excluded": CART, "service": ServiceKey("shop", "Job", "cart")}, "excluded.services has shop/cart"),
        ("shop", {"scheduler_name": "forecast-scheduler"}, "its schedulerName is forecast-scheduler"),
        ("shop", {"owner_kind": "DaemonSet"}, "it is a pod of a DaemonSet"),
        ("shop", {"owner_kind": "Node"}, "it is a pod of a Node"),
        ("shop", {"host_network": True}, "it is on the network of its node"),
        ("shop", {"node_name": "n1"}, "it has its node already"),
        ("shop", {"annotations": {"kubernetes.io/config.mirror": ""}}, "it has its node already"),
    ],
)
def test_pods_that_must_not_wait_are_never_held(namespace: str, facts: dict[str, Any], why: str) -> None:
    assert _why(namespace, **facts) == why
