"""What must hold at the end of a day, once all has come to rest, and of everything that was ever seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from testing.clusters.own_nodes import condition
from testing.servers.cluster_objects import Manifest
from testing.servers.job_controller import wanted
from testing.soak.watchman import what_is_wrong
from testing.waiting import eventually

if TYPE_CHECKING:
    from testing.soak.world import World

_ENDED: Final = ("Succeeded", "Failed")
_AT_REST: Final = ("forecast_assumed_pods", "forecast_bindings_in_flight")
_EXPECTED: Final = re.compile(
    "|".join(
        [
            r"usage cannot be measured|usage is measured again",  # the outage
            r"model refused",  # the damaged model
            # The two GPU nodes: the trainer learns capacities from three nodes on.
            r"no capacity is known or can be learned of disk on 2 of \d+ nodes, network on 2 of \d+ nodes, log on 2 of",
            # The API server restarts: watches end, and whoever leads may not go on without the Lease.
            r"list or watch of \w+: (ProtocolError|NewConnectionError|silence: |429 |503 )",
            r"the lease cannot be read or written|this replica does not lead any more",
            r"are not (posted|written) why=.*(no answer|NewConnectionError|ProtocolError|answered 503|does not lead)",
        ]
    )
)
"""Complaints that the events of a day are the cause of."""


def assert_day_is_settled(world: World, *, never: str, gangs: Sequence[str], n_members: int) -> None:
    """Raises AssertionError.

    never : pods whose names begin so fit nowhere;   gangs : each of so many members, and all of them fit
    """
    world.awaits(lambda: not world.deployments.unsettled(), world.deployments.unsettled)
    world.awaits(lambda: not _unfinished(world), lambda: _unfinished(world))
    world.awaits(lambda: not _waiting(world, never), lambda: _waiting(world, never))
    for name in gangs:
        members = [one for one in world.history.all(f"{name}-") if not one.is_gone]
        assert len(members) == n_members and all(one.nodes for one in members), members
    assert not list(what_is_wrong(world.pods(), world.writer.list_all("nodes")))
    assert world.watchman.wrong == []
    _assert_nothing_was_lost_or_bound_twice(world, never)
    _assert_processes_are_sound(world)
    assert world.asker.failures == []
    assert world.deployments.errors == [] and world.jobs.errors == [] and world.jobs.failed == set()


def unexpected_complaints(world: World) -> dict[str, list[str]]:
    """Lines of the logs of our processes that no event of a day accounts for."""
    found = {name: [line for line in one.complaints if not _EXPECTED.search(line)] for name, one in world.ours.items()}
    return {name: lines for name, lines in found.items() if lines}


def _unfinished(world: World) -> list[str]:
    """Jobs that have not as many successes as they want."""
    pods = world.pods()
    found = []
    for one in world.writer.list_all("jobs"):
        uid = one["metadata"]["uid"]
        of_it = [pod for pod in pods if any(owner["uid"] == uid for owner in _owners(pod))]
        n_done = sum(pod["status"].get("phase") == "Succeeded" for pod in of_it)
        if n_done < one["spec"]["completions"] or wanted(one, of_it):
            found.append(f"{one['metadata']['name']}: {n_done} of {one['spec']['completions']} are done")
    return found


def _owners(manifest: Manifest) -> list[Manifest]:
    return list(manifest["metadata"].get("ownerReferences", []))


def _waiting(world: World, never: str) -> list[str]:
    """Pods without a node that would fit, and those that fit nowhere and are not told why."""
    return [
        one["metadata"]["name"]
        for one in world.writer.list_all("pods", field_selector="spec.nodeName=")
        if one["status"].get("phase") not in _ENDED
        and not (one["metadata"]["name"].startswith(never) and all(condition(one)))
    ]


def _assert_nothing_was_lost_or_bound_twice(world: World, never: str) -> None:
    """Of every binding since the beginning, as a watch saw them."""
    world.awaits(lambda: not _mismatched(world), lambda: _mismatched(world))
    stories = world.history.all()
    assert not [one for one in stories if len(one.nodes) > 1]
    assert not [one for one in stories if one.nodes and one.name.startswith(never)]
    assert not [one for one in stories if one.phase == "Failed"]


def _mismatched(world: World) -> set[str]:
    """UIDs of pods that are there and were not seen to come, or are not there and were not seen to go."""
    seen = {one.uid for one in world.history.all() if not one.is_gone}
    return seen ^ {one["metadata"]["uid"] for one in world.pods()}


def _assert_processes_are_sound(world: World) -> None:
    for name, one in world.ours.items():
        assert not one.process_ended(), one.log[-3000:]
        assert one.metric("forecast_self_check_drift") == 0, (name, one.log[-3000:])
    world.awaits(
        lambda: world.all_report("forecast_degradation_level", 0), lambda: world.reports("forecast_degradation_level")
    )
    schedulers = [one for name, one in world.ours.items() if name.startswith("schedule-")]
    assert sum(one.metric("forecast_leader") for one in schedulers) == 1
    for one in schedulers:
        assert eventually(lambda of=one: all(of.metric(name) == 0 for name in _AT_REST)), one.log[-3000:]  # type: ignore[misc]
        for metric in ("forecast_job_deadline_missed_total", "forecast_overcommitted_nodes"):
            assert one.metric(metric) == 0, metric
    assert world.kube_scheduler.is_running()
    complaints = unexpected_complaints(world)
    assert not complaints, complaints
