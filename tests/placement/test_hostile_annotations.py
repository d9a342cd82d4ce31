"""What anybody who may create a pod can write into its annotations: long and odd text is read in bounded work, with a
short mistake or none. All annotations together have more than the 256 KiB that the API server stores of a pod
(TotalAnnotationSizeLimitB of apimachinery)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from admission.templates.shaping_annotations import pod_record
from base.errors import InputError
from cluster.live.virtual_request import virtual_request
from kube.decoding.decoding import decode_pod
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.devices.device_demand import demand_mistake, gpu_demand
from placement.node_rule_settings import DeviceOptions
from placement.pod_groups.minima import MIN_PER_ROLE, role_minima
from profiles.gpu.tide.training_annotations import training_terms
from profiles.job.job_annotations import terms_of
from scorer.scoring_policy import opts_out
from testing.servers.cluster_objects import pod

LARGEST = 32 * 1024
MOST_STEPS = 3 * LARGEST
SHORT = 4_000

ROOT = Path(__file__).parents[2]
TEXTS = {
    "long": "x" * LARGEST,
    "digits": "9" * LARGEST,
    "nested": "[" * LARGEST,
    "many keys": "{" + ",".join(f'"k{number}":"1"' for number in range(2_000)) + "}",
    "huge number": '{"cpu": "1e999999999"}',
    "digits in JSON": '{"cpu": ' + "9" * (LARGEST - 10) + "}",
    "negative": '{"cpu": "-1"}',
    "not a number": '{"cpu": NaN, "memory": Infinity}',
    "units": "1h" * (LARGEST // 2),
    "null bytes": "\x00" * 1000,
    "surrogates": "\U0010ffff" * (LARGEST // 4),
}


def names() -> list[str]:
    """Every annotation that the sources read."""
    found = set()
    for package in ("kube", "scorer", "placement", "extender", "scheduler", "admission"):
        for file in (ROOT / package).rglob("*.py"):
            found |= set(re.findall(r'ANNOTATION_PREFIX(?: \+ "|\})([a-z-]+)', file.read_text()))
    return sorted(ANNOTATION_PREFIX + name for name in found)


def _virtual_request(one: PodInfo) -> object:
    found = virtual_request(one, None)
    assert (found.amount >= 0).all() and (found.amount < float("inf")).all()
    return found.mistake


def _gpus(one: PodInfo) -> object:
    gpu_demand(one, DeviceOptions())
    return demand_mistake(one, DeviceOptions())


def _minima(one: PodInfo) -> object:
    try:
        return role_minima(one.annotations[MIN_PER_ROLE])
    except InputError as error:
        return str(error)


READERS: dict[str, Callable[[PodInfo], object]] = {
    "virtual request": _virtual_request,
    "job terms": lambda one: terms_of(one).mistakes,
    "training terms": lambda one: training_terms(one.annotations).mistakes,
    "cards": _gpus,
    "minimum per role": _minima,
    "templates": lambda one: pod_record(one.annotations),
    "opt-out": opts_out,
}


def _in_few_steps(work: Callable[[], object]) -> object:
    """Counts the lines of Python that run: what a slow reader spends, whatever else the machine does meanwhile."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        if count > MOST_STEPS:
            raise AssertionError(f"more than {MOST_STEPS} lines of Python")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        return work()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_tenant_writes_is_read_in_bounded_work(text: str) -> None:
    made = pod("p", cpu="1")
    made["metadata"]["annotations"] = dict.fromkeys(names(), TEXTS[text])
    one = decode_pod(made)
    for reader, read in READERS.items():
        said = _in_few_steps(partial(read, one))
        assert len(repr(said)) < SHORT, f"{reader}: {len(repr(said))} characters of complaint: {repr(said)[:300]}"
