"""What is kept of providers while their nodes and pods come, go, start and fail."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import PodPhase
from placement.virtual_node_settings import Provider
from profiles.job.circuit_breaker import StartFailure
from profiles.job.serverless.provider_tables import LOST_SECONDS, ProviderTables
from tests.profiles.job.serverless.providers_world import OURS, World, job_pod, provider_node, real_node

ACI = Provider(name="aci", start_timeout=100.0)


def given_up(world: World) -> list[tuple[str, StartFailure]]:
    return [(one.pod.name, one.failure) for one in world.tables.not_started()]


def test_a_pod_that_does_not_start_is_given_up_after_its_time() -> None:
    world = World([provider_node("v", "aci")], ACI)
    pod = job_pod("p")
    world.place([pod])
    world.now += 1_000.0
    assert given_up(world) == [], "it is not even bound"
    world.run(pod, "v")
    assert given_up(world) == [("p", StartFailure.STALLED)]
    assert given_up(world) == [("p", StartFailure.STALLED)], "until it is gone"
    assert world.tables.failures == {("aci", StartFailure.STALLED): 1}, "but it failed once"
    world.gone(world.view.state.pods["p"])
    assert given_up(world) == []


@pytest.mark.parametrize("goes", [True, False])
def test_pods_on_a_node_that_is_lost_are_given_up_soon(goes: bool) -> None:
    world = World([provider_node("v", "aci")], ACI)
    pod = world.run(job_pod("p"), "v")
    if goes:
        world.cluster.delete(provider_node("v", "aci"))
    else:
        world.put(provider_node("v", "aci", ready=False))
    assert given_up(world) == [], "it may come back"
    world.now += LOST_SECONDS
    assert given_up(world) == [("p", StartFailure.LOST)]
    world.put(provider_node("v", "aci"))
    assert world.use("aci")[0] == 1
    world.gone(pod)
    assert world.use("aci")[0] == 0


@pytest.mark.parametrize("for_good", [True, False])
def test_a_rejected_pod_is_a_failure_once_and_its_provider_backs_off(for_good: bool) -> None:
    world = World([provider_node("v", "aci"), real_node()], ACI)
    pod = job_pod("p")
    world.place([pod])
    world.rejected(pod, "v", for_good=for_good)
    assert world.tables.failures == {("aci", StartFailure.REJECTED): 1}
    assert given_up(world) == ([] if for_good else [("p", StartFailure.REJECTED)])
    assert "backed off" in world.reasons(job_pod("q"))["v"]
    assert world.failed_nodes.tells_apart(pod) is None, "once it works again the Job may come back"


def test_a_pod_that_is_rejected_where_others_start_goes_elsewhere() -> None:
    world = World([provider_node("v", "aci"), real_node()], ACI)
    bad = world.run(job_pod("bad", job="bad"), "v")
    world.now += 1.0
    world.started(world.run(job_pod("good", job="good"), "v"), "v")
    world.rejected(bad, "v")
    assert world.place([job_pod("bad-2", job="bad"), job_pod("bad-3", job="bad")]) == ["real", "real"]
    assert world.place([job_pod("good-2", job="good")]) == ["v"]


def test_a_pod_that_fails_by_itself_is_not_its_providers_failure() -> None:
    world = World([provider_node("v", "aci")], ACI)
    pod = world.started(world.run(job_pod("p"), "v"), "v")
    world.run(pod, "v", phase=PodPhase.FAILED, started=world.now)
    world.run(world.run(job_pod("late"), "v"), "v", phase=PodPhase.FAILED, status_reason="DeadlineExceeded")
    assert not world.tables.failures and world.reasons(job_pod("q")) == {}


def test_whoever_found_no_room_is_told_when_there_is_some() -> None:
    world = World([provider_node("v", "aci")], ACI.replace(most_starting=1))
    pod = job_pod("p")
    world.place([pod])
    bound = world.run(pod, "v")
    assert world.told == 0
    assert world.reasons(job_pod("q"))
    world.started(bound, "v")
    assert world.told == 1 and not world.reasons(job_pod("q"))
    world.started(world.run(job_pod("r"), "v"), "v")
    assert world.told == 1, "nobody had asked"


_ACTS = st.tuples(
    st.sampled_from(["place", "start", "reject", "finish", "go", "lose", "heal", "list"]), st.integers(0, 9)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_ACTS, max_size=40))
def test_following_gives_what_counting_anew_gives(acts: list[tuple[str, int]]) -> None:
    nodes = [provider_node("a", "aci"), provider_node("b", "aci"), provider_node("c"), real_node()]
    world = World(nodes, ACI, Provider(name="other", most_pods=4))
    for what, number in acts:
        world.now += 7.0
        node = "abc"[number % 3]
        pod = world.view.state.pods.get(f"p-{number}")
        match what:
            case "place" if pod is None:
                world.place([job_pod(f"p-{number}", cpu=0.1 * (number + 1))])
            case "start" if pod is not None and pod.node and pod.phase is PodPhase.PENDING:
                world.started(pod, pod.node)
            case "reject" if pod is not None and pod.node and pod.phase is PodPhase.PENDING:
                world.rejected(pod, pod.node, for_good=number % 2 == 0)
            case "finish" if pod is not None and pod.node:
                world.run(pod, pod.node, phase=PodPhase.SUCCEEDED, started=world.now)
            case "go" if pod is not None:
                world.gone(pod)
            case "lose":
                world.cluster.delete(provider_node(node))
            case "heal":
                world.put(provider_node(node, "aci" if number % 2 else ""))
            case "list":
                left = [one for one in world.view.state.pods.values() if one.uid[-1] != str(number)]
                world.cluster.replace_pods(left)
        world.tables.not_started()
    world.reasons(job_pod("q"))
    assert _counted(world.tables) == _by_hand(world)


def _counted(tables: ProviderTables) -> dict[str, tuple[int, int, frozenset[str]]]:
    return {use.provider.name: (use.pods, use.cpu, frozenset(use.starting)) for use in tables.uses}


def _by_hand(world: World) -> dict[str, tuple[int, int, frozenset[str]]]:
    found: dict[str, tuple[int, int, frozenset[str]]] = {}
    state = world.view.state
    for use in world.tables.uses:
        there = [
            pod
            for uid in state.seat_of
            if (pod := state.pods[uid]).scheduler_name == OURS
            and world.tables.provider_at(pod.node) == use.provider.name
        ]
        cpu = sum(round(pod.requests["cpu"] * 1000) for pod in there)
        starting = frozenset(pod.uid for pod in there if pod.phase is PodPhase.PENDING)
        found[use.provider.name] = (len(there), cpu, starting)
    return found
