"""Owners that run once under generated names: which of them are one service, and how their pods find it."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.one_off_owners import LEAST_MEMBERS, group_of_each, known_as, stem
from forecast.service_key import ServiceKey

HOUR = 3600.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("daily-load-extract-1a2b3c4d", "daily-load-extract-*"),
        ("daily-load-extract-deadbeef", "daily-load-extract-*"),
        ("runner-1a2b3c4d-project-7-concurrent-0", "runner-*-project-*-concurrent-*"),
        ("etl-a1b2c", "etl-*"),
        ("build-x7k2p", "build-*"),
        ("kaniko-bcdfg", "kaniko-*"),
        ("release-9xk2m-pod", "release-*-pod"),
        ("train-7f9c24e8-3b2a-4c1d-9e8f-0a1b2c3d4e5f-worker", "train-*-worker"),
        ("backup-20261121-093000", "backup-*"),
        ("backup-20261121t093000z", "backup-*"),
        ("dag-task-1xk9z0qv", "dag-task-*"),
        ("pi-1a2b3c4d5e6f7a8b-exec-12", "pi-*-exec-*"),
        ("f47ac10b-58cc-4372-a567-0e02b2c3d479", "*"),
        ("run12", "run*"),
        ("ci.job_12", "ci.job_*"),
        ("cart", "cart"),
        ("k8s-dump", "k8s-dump"),
        ("postgres-primary", "postgres-primary"),
    ],
)
def test_the_generated_parts_of_a_name_are_found(name: str, expected: str) -> None:
    assert stem(name) == expected
    assert stem(expected) == expected, "a group is called what it is called"


def owners(kind: str, names: list[str]) -> list[ServiceKey]:
    return [ServiceKey("batch", kind, name) for name in names]


def groups(services: list[ServiceKey], life: float = HOUR, ended: bool = True) -> dict[ServiceKey, ServiceKey]:
    return group_of_each(services, np.full(len(services), life), np.full(len(services), ended))


RANDOM = [f"etl-{tag}" for tag in ("a1b2c", "12345", "0f9e8", "77d1a", "c0de1", "9a8b7")]
GROUP = ServiceKey("batch", "Workflow", "etl-*")


def test_owners_that_ran_once_and_share_a_stem_are_one_service() -> None:
    services = owners("Workflow", [*RANDOM, "etl-decaf", "nightly-report"])
    found = groups(services)
    assert {found.get(service) for service in services[:-1]} == {GROUP}, "decaf is a word, and hexadecimal too"
    assert services[-1] not in found
    assert GROUP.is_group and GROUP.runs_to_completion and ServiceKey.parse(str(GROUP)) == GROUP


@pytest.mark.parametrize(
    ("kind", "names", "life", "ended"),
    [
        ("Workflow", RANDOM[: LEAST_MEMBERS - 1], HOUR, True),  # too few
        ("Workflow", RANDOM, 25 * HOUR, True),  # they live on
        ("Workflow", RANDOM, HOUR, False),  # they may live on
        ("Deployment", RANDOM, HOUR, True),  # their pods are replaced
        ("Workflow", ["load-north", "load-south", "load-east", "load-west", "load-up"], HOUR, True),  # named by people
    ],
)
def test_all_others_stay_themselves(kind: str, names: list[str], life: float, ended: bool) -> None:
    assert groups(owners(kind, names), life, ended) == {}


def test_a_pod_of_tomorrow_finds_the_group_and_a_service_of_its_own_comes_first() -> None:
    own = ServiceKey("batch", "Workflow", "etl-00001")
    table = {GROUP, own, ServiceKey("batch", "Deployment", "etl-*")}
    assert known_as(table, ServiceKey("batch", "Workflow", "etl-b2c3d")) == GROUP
    assert known_as(table, ServiceKey("batch", "Workflow", "etl-decaf")) == GROUP
    assert known_as(table, own) == own and known_as(table, GROUP) == GROUP
    for stranger in (
        "other/Workflow/etl-b2c3d",
        "batch/Job/etl-b2c3d",
        "batch/Deployment/etl-b2c3d",
        "batch/Workflow/x",
    ):
        assert known_as(table, ServiceKey.parse(stranger)) is None
