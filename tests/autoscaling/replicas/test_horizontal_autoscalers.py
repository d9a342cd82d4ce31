"""What is read of a HorizontalPodAutoscaler, and what our patches say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaling.replicas.horizontal_autoscalers import (
    ASKS_LABEL,
    LEFT_UNTIL,
    MANAGER,
    ORIGINAL,
    RAISED,
    MetricTarget,
    Record,
    leave_body,
    raise_body,
    read,
    read_page,
    restore_body,
)
from autoscaling.replicas.loads_ahead import METRIC
from tests.autoscaling.replicas.made_up_autoscalers import autoscaler, manifest, metric

OURS = {ORIGINAL: "2", RAISED: "6"}


@pytest.mark.parametrize(
    ("label", "asking", "asks"),
    [("true", (), True), (None, (), False), (None, ("shop",), True), ("false", ("shop",), False)],
)
def test_its_own_label_wins_over_that_of_its_namespace(label: str | None, asking: tuple[str, ...], asks: bool) -> None:
    labels = {} if label is None else {ASKS_LABEL: label}
    assert autoscaler(metadata={"labels": labels}, asking=frozenset(asking)).asks is asks


KEPT: dict[str, tuple[dict[str, Any], str]] = {
    "KEDA": (
        {"metadata": {"ownerReferences": [{"kind": "ScaledObject", "name": "s0", "controller": True}]}},
        "its owner decides: with KEDA use its Prometheus scaler",
    ),
    "our external metric": (
        {"spec": {"metrics": [metric("500m"), {"type": "External", "external": {"metric": {"name": METRIC}}}]}},
        "it reads the load ahead itself",
    ),
    "no resource": ({"spec": {"metrics": [{"type": "Pods"}]}}, "it has no CPU or memory target"),
    "no growth": ({"spec": {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}}}, "its scaleUp policy is Disabled"),
    "scaled to zero": ({"spec": {"minReplicas": 0}, "status": {"currentReplicas": 0}}, "its target has no replicas"),
    "deleted": ({"metadata": {"deletionTimestamp": "2026-03-02T00:00:00Z"}}, "it is being deleted"),
    "an ordinary one": ({}, ""),
}


@pytest.mark.parametrize("case", KEPT)
def test_which_are_left_alone(case: str) -> None:
    fields, why = KEPT[case]
    assert autoscaler(**fields).kept == why


def test_its_targets_and_its_minimum_where_none_is_set() -> None:
    one = autoscaler(spec={"minReplicas": None, "metrics": [metric(60), metric("1Gi", "memory"), metric("5", "gpu")]})
    assert one.minimum == 1
    assert one.targets == (MetricTarget("cpu", None, 0.6), MetricTarget("memory", 2.0**30, None))


@pytest.mark.parametrize(
    ("rules", "limit", "period", "tolerance"),
    [
        ({}, 10, 15, 0.1),  # the double, or four more
        ({"tolerance": "50m", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}]}, 6, 120, 0.05),
        (
            {
                "selectPolicy": "Min",
                "policies": [
                    {"type": "Percent", "value": 10, "periodSeconds": 60},
                    {"type": "Pods", "value": 4, "periodSeconds": 60},
                ],
            },
            6,
            60,
            0.1,
        ),
    ],
)
def test_its_scale_up_policies_limit_it(rules: dict[str, Any], limit: int, period: float, tolerance: float) -> None:
    one = autoscaler(spec={"behavior": {"scaleUp": rules}}, status={"currentReplicas": 5})
    assert (one.limit, one.period, one.tolerance) == (limit, period, tolerance)


def test_a_record_is_what_we_could_have_written() -> None:
    assert autoscaler(annotations=OURS, spec={"minReplicas": 6}).record == Record(2, 6)
    for bad in (
        {ORIGINAL: "2"},
        {ORIGINAL: "-2", RAISED: "6"},
        {ORIGINAL: "6", RAISED: "2"},
        {ORIGINAL: "٢", RAISED: "6"},
    ):
        assert autoscaler(annotations=bad).record is None


def test_who_set_the_minimum() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:minReplicas": {}}}
    managers = [
        {"manager": MANAGER, "fieldsV1": fields},
        {"manager": "argocd-controller", "fieldsV1": fields},
        {"manager": "kube-controller-manager", "subresource": "status", "fieldsV1": fields},
    ]
    one = autoscaler(metadata={"managedFields": managers})
    assert one.setter == "argocd-controller" and one.set_by_us


def test_patches_name_the_version_that_was_read_and_hold_value_and_record() -> None:
    quiet, raised = autoscaler(), autoscaler(annotations=OURS, spec={"minReplicas": 6})
    changed = autoscaler(annotations=OURS, spec={"minReplicas": 4})
    identity = {"uid": "s0", "resourceVersion": "7"}
    assert json.loads(raise_body(quiet, 5)) == {
        "metadata": {**identity, "annotations": {ORIGINAL: "2", RAISED: "5", LEFT_UNTIL: None}},
        "spec": {"minReplicas": 5},
    }
    assert json.loads(raise_body(raised, 8))["metadata"]["annotations"][ORIGINAL] == "2"
    assert json.loads(restore_body(raised))["spec"] == {"minReplicas": 2}
    assert "spec" not in json.loads(restore_body(changed)), "what others set stays"
    assert json.loads(leave_body(changed, 1_772_438_400))["metadata"]["annotations"] == {
        ORIGINAL: None,
        RAISED: None,
        LEFT_UNTIL: "2026-03-02T08:00:00Z",
    }


def test_one_that_cannot_be_read_hides_no_other() -> None:
    broken = manifest("broken")
    broken["spec"]["maxReplicas"] = "many"
    other = manifest("other", spec={"scaleTargetRef": {}})
    page = {"items": [broken, other, manifest("s1")], "metadata": {"continue": "next"}}
    found, unreadable, token = read_page(json.dumps(page).encode(), frozenset())
    assert ([one.name for one in found], unreadable, token) == (["s1"], 2, "next")
    assert read(b"{}", frozenset()) is None
