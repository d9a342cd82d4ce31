"""In shadow mode those pods are decided about that the webhook would hold, and nothing is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from advisor.advice_binder import ShadowBinder, asks_for_advice
from base.excluded import ExcludedOptions
from forecast.service_key import Owner
from placement.gate_exemptions import ADVICE, AdviceMode
from testing.objects import pod_info

NAMESPACES = {"shop": {"team": "a"}, "all": {ADVICE: "advise"}, "kube-system": {ADVICE: "advise"}}
ASKS = asks_for_advice(NAMESPACES.get, {"default-scheduler", "second"}, ExcludedOptions())


def test_nothing_is_bound() -> None:
    assert asyncio.run(ShadowBinder().bind(pod_info("a"), "n1")).is_success


@pytest.mark.parametrize(
    ("namespace", "label", "asks"),
    [
        ("shop", None, False),
        ("shop", "advise", True),
        ("shop", "prefer", True),
        ("shop", "yes", False),
        ("all", None, True),
        ("all", "off", False),
        ("new", None, False),
        ("new", "advise", True),
        ("kube-system", "advise", False),
    ],
)
def test_labels_ask(namespace: str, label: str | None, asks: bool) -> None:
    labels = {} if label is None else {ADVICE: label}
    assert ASKS(pod_info("a", namespace=namespace, labels=labels)) is asks


def test_pods_of_excluded_services_do_not_ask() -> None:
    asks = asks_for_advice(NAMESPACES.get, {"default-scheduler"}, excluded=ExcludedOptions(services=("shop/cart",)))
    pods = [
        pod_info(name, namespace="shop", labels={ADVICE: "advise"}, owner=Owner("StatefulSet", name))
        for name in ("cart", "pay")
    ]
    assert [asks(pod) for pod in pods] == [False, True]


def test_a_policy_asks_where_no_label_says_anything() -> None:
    asks = asks_for_advice(NAMESPACES.get, {"default-scheduler"}, ExcludedOptions(), lambda pod: AdviceMode.PREFER)
    assert asks(pod_info("a", namespace="shop"))
    assert not asks(pod_info("a", namespace="shop", labels={ADVICE: "off"}))


@pytest.mark.parametrize(
    ("fields", "asks"),
    [
        ({}, True),
        ({"scheduler_name": "second"}, True),
        ({"owner": Owner("ReplicaSet", "x")}, True),
        ({"scheduler_name": "forecast-scheduler"}, False),
        ({"owner": Owner("DaemonSet", "x")}, False),
        ({"owner": Owner("Node", "x")}, False),
        ({"node": "n1"}, False),
    ],
)
def test_pods_that_would_not_be_held_do_not(fields: dict[str, Any], asks: bool) -> None:
    assert ASKS(pod_info("a", namespace="all", **fields)) is asks
