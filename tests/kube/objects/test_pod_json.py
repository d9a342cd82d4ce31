"""A pod sent to a scorer elsewhere arrives with all that scores read of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kube.decoding.decoding import decode_pod
from kube.objects.pod_json import pod_json

READ_BY_SCORES = (
    "uid",
    "namespace",
    "name",
    "labels",
    "annotations",
    "owner",
    "owner_uid",
    "requests",
    "limits",
    "qos",
    "phase",
    "created",
    "scheduler_name",
    "priority",
)

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=12)
AMOUNTS = st.one_of(
    st.sampled_from(["0", "1n", "100m", "0.1", "1500m", "1.5Gi", "8000000001", "8Ei", "1e29", "123456789.987654321"]),
    st.integers(0, 10**16).map(lambda n: f"{n}n"),
    st.floats(0, 1e15).map(repr),
)
RESOURCES = st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"]), AMOUNTS)
CONTAINERS = st.fixed_dictionaries(
    {
        "name": NAMES,
        "resources": st.fixed_dictionaries({}, optional={"requests": RESOURCES, "limits": RESOURCES}),
    }
)
OWNERS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["ReplicaSet", "Job", "DaemonSet"]),
        "name": NAMES,
        "uid": NAMES,
        "controller": st.just(True),
    }
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": NAMES},
            optional={
                "namespace": NAMES,
                "uid": NAMES,
                "labels": st.dictionaries(NAMES, st.text(max_size=12)),
                "annotations": st.dictionaries(NAMES.map("forecast-scheduler.io/{}".format), st.text(max_size=40)),
                "ownerReferences": st.lists(OWNERS, max_size=1),
                "creationTimestamp": st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(
                    lambda t: f"{t.replace(microsecond=0).isoformat()}Z"
                ),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(CONTAINERS, min_size=1, max_size=3)},
            optional={
                "initContainers": st.lists(CONTAINERS, max_size=2),
                "schedulerName": NAMES,
                "priority": st.integers(-(2**31), 2**31 - 1),
                "overhead": RESOURCES,
            },
        ),
    },
    optional={
        "status": st.fixed_dictionaries(
            {},
            optional={
                "phase": st.sampled_from(["Pending", "Running", "Failed"]),
                "qosClass": st.sampled_from(["Guaranteed", "Burstable", "BestEffort"]),
            },
        )
    },
)


@given(manifest=PODS)
def test_it_is_read_back_as_it_was(manifest: dict[str, Any]) -> None:
    pod = decode_pod(manifest)
    again = decode_pod(pod_json(pod))
    for field in READ_BY_SCORES:
        assert getattr(again, field) == getattr(pod, field), field


@given(manifest=PODS, container=CONTAINERS)
def test_what_leastallocated_counts_is_kept_of_a_pod_of_one_container(
    manifest: dict[str, Any], container: dict[str, Any]
) -> None:
    spec = {"containers": [container]}
    pod = decode_pod({"metadata": manifest["metadata"], "spec": spec})
    assert decode_pod(pod_json(pod)).nonzero_requests == pod.nonzero_requests
