"""Random pods, decided by Kubernetes' own code and by ours.

upstream_pod_requests.jsonl holds pods and, for each, what these functions of Kubernetes v1.36.3 said: PodRequests and
PodLimits of component-helpers/resource (with the status counted, as kube-scheduler does; `nonzero` with its defaults
for containers that request nothing) and ComputePodQOS, after SetObjectDefaults_Pod.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kube.decoding.decoding import decode_pod
from kube.objects.kubernetes_version import COMPARED
from kube.objects.objects import QosClass

CASES = Path(__file__).with_name("upstream_pod_requests.jsonl")
QOS = {"Guaranteed": QosClass.GUARANTEED, "Burstable": QosClass.BURSTABLE, "BestEffort": QosClass.BEST_EFFORT}


def test_kubernetes_decides_the_same() -> None:
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    assert len(cases) == 120
    for case in cases:
        pod, upstream = decode_pod(case["pod"], COMPARED[0]), case["upstream"]
        nonzero = dict(zip(("cpu", "memory"), pod.nonzero_requests, strict=True))
        assert pod.requests == pytest.approx(upstream["requests"], rel=1e-12), case
        assert pod.limits == pytest.approx(upstream["limits"], rel=1e-12), case
        assert nonzero == pytest.approx(upstream["nonzero"], rel=1e-12), case
        assert pod.qos is QOS[upstream["qos"]], case
