"""docs/use/gangs.md says what the code does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forecast.errors import InputError
from kube.decoding.decoding import Kind
from kube.objects.objects import Phase
from placement.pod_groups.by_annotation import MIN_MEMBER
from placement.pod_groups.labels import GROUP_LABEL, OLDER_GROUP_LABEL, ROLE
from placement.pod_groups.role_minima import MIN_PER_ROLE, role_minima
from scheduler.gangs.gang_gate import Reason
from scheduler.gangs.group_status import wanted_status
from scheduler.gangs.options import GangOptions
from tests.scheduler.cycle.test_cycle import World, workers
from tests.scheduler.gangs.made_up import TRAIN, Scene, group, member

HERE = Path(__file__).parents[3]
PAGE = (HERE / "docs/use/gangs.md").read_text()
WITHOUT_STATUS = {Reason.NOT_READ, Reason.MISSING}


def test_the_example_is_the_one_that_is_shipped() -> None:
    for name in ("training", "by-annotation"):
        assert (HERE / f"deploy/crds/podgroups/examples/{name}.yaml").read_text() in PAGE


def test_names_are_those_that_are_read() -> None:
    for name in (GROUP_LABEL, OLDER_GROUP_LABEL, ROLE, MIN_PER_ROLE, MIN_MEMBER):
        assert f"`{name}`" in PAGE


def test_a_cycle_says_of_a_group_that_does_not_fit_what_is_shown() -> None:
    world = World(4, workers(16))
    world.gangs.put_group(group(16))
    for reason in (Reason.UNSCHEDULABLE, Reason.TIMEOUT):
        world.run(gang=TRAIN)
        report = world.gangs.report(TRAIN)
        assert report is not None and f"| {reason.value} | {report.verdict.message} |" in PAGE
        world.now += 60


def test_a_group_that_sits_in_part_says_so() -> None:
    world = World(3, [*workers(8), member("other-0", of="", node="node-2")])
    world.gangs.put_group(group(8))
    for number in range(3):
        world.scorer.tables.put(
            Kind.PODS, replace(world.pods[f"worker-{number}"], node="node-0" if number < 2 else "node-1")
        )
    for reason in (Reason.UNSCHEDULABLE, Reason.TIMEOUT):
        world.run(gang=TRAIN, uids=[f"worker-{number}" for number in range(3, 8)])
        report = world.gangs.report(TRAIN)
        assert report is not None and report.verdict.reason is reason
        held = report.verdict.message.rpartition("; ")[2]
        assert held == "3 members keep their nodes" and f"`{held}`" in PAGE
        wanted = wanted_status(report)
        assert (wanted.phase, wanted.scheduled) == ("Unknown", 3)
        world.now += 60


def test_every_reason_is_explained() -> None:
    for reason in set(Reason) - WITHOUT_STATUS:
        assert f"| {reason.value} |" in PAGE


def test_words_are_those_that_are_shown() -> None:
    scene = Scene(options=GangOptions())
    scene.directory.put_group(group(4, {"ps": 1}))
    scene.put(member("a"), member("b"))
    assert f"| {scene.gate()} |" in PAGE
    scene.directory.put_group(group(2))
    report = scene.directory.report(TRAIN)
    assert report is not None and f"| {report.verdict.message} |" in PAGE
    scene.directory.put_group(group(16))
    scene.put(*(member(str(n), node="n1", phase=Phase.RUNNING) for n in range(16)))
    scene.cluster.delete_pod("a")
    scene.cluster.delete_pod("b")
    report = scene.directory.report(TRAIN)
    assert report is not None and f"| {report.verdict.message} |" in PAGE
    with pytest.raises(InputError) as caught:
        role_minima('{"worker": "four"}')
    assert f"cannot be used: {caught.value} |" in PAGE
