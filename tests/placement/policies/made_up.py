"""Pods, rules and documents for tests of policies, with what a test is about said and the rest filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kube.objects.objects import PodInfo
from placement.policies.policy import POLICY_ANNOTATION
from tests.placement.decisions.made_up import pod as some_pod

DOCUMENT = """
default: balanced
policies:
  balanced: {}
  latency-critical:
    description: Nodes below 80 % at their predicted peak
    filters: [NodeResourcesFit, PredictedPeak, MachineGroup]
    highest_peaks: {cpu: 0.8}
    scores:
      weights: {predicted_peak: 1, qos_balance: 0.5}
    resources: {cpu: 1, memory: 0.25}
    deadline: 100ms
  batch:
    cards: {protection: hard}
    scores: {weights: {most_allocated: 1}, request_weights: {cpu: 2}, shape: {0: 10, 100: 0}}
rules:
  - policy: latency-critical
    description: carts
    namespaces: [shop]
    selector: {matchLabels: {app: cart}}
  - policy: batch
    namespace_selector: {matchLabels: {team: data}}
  - policy: batch
    selector:
      matchExpressions:
        - {key: kind, operator: In, values: [job, cronjob]}
        - {key: urgent, operator: DoesNotExist}
"""


def pod(
    labels: Mapping[str, str] | None = None,
    *,
    namespace: str = "shop",
    policy: str | None = None,
    uid: str = "uid-1",
) -> PodInfo:
    annotations = {} if policy is None else {POLICY_ANNOTATION: policy}
    return replace(
        some_pod(uid, ""), namespace=namespace, name=f"pod-{uid}", labels=dict(labels or {}), annotations=annotations
    )
