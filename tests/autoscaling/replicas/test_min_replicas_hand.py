"""minReplicas on a real API server: raised, lowered, restored, whatever happens in between; what others set stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from autoscaling.autoscale_settings import MinReplicasOptions
from autoscaling.replicas.horizontal_autoscalers import ASKS_LABEL, LEFT_UNTIL, ORIGINAL, RAISED
from autoscaling.replicas.loads_ahead import LoadsAhead
from autoscaling.replicas.min_replicas_hand import MinReplicasHand
from base.excluded import ExcludedOptions
from kube.session.api_session import ApiSession
from testing.servers.control_plane.control_plane import ControlPlane
from tests.autoscaling.conftest import Api, refusal
from tests.autoscaling.nodes.made_up import nodes_with
from tests.autoscaling.replicas.made_up_autoscalers import manifest
from tests.autoscaling.replicas.test_raising import AHEAD, NOW, loads
from tests.autoscaling.sessions import Counting, Killed

HPAS: Final = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
QUOTAS: Final = "/api/v1/namespaces/shop/resourcequotas"
RAMP, STEADY = loads((1.0, 2.5), (1.0, 2.5)), loads((1.0, 1.0), (1.0, 1.0))
TOP: Final = MinReplicasOptions.hold + 1


class Events:
    """Keeps reasons of events."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def record(self, regarding: dict[str, str], reason: str, note: str, *, is_warning: bool) -> bool:
        self.reasons.append(reason)
        return True


class World:
    """Two autoscalers that ask, of two replicas each."""

    def __init__(self, api: Api) -> None:
        self.api, self.events = api, Events()

    def hand(self, session: Any = None, said: LoadsAhead = RAMP, *, keeps_marks: bool = True) -> MinReplicasHand:
        return MinReplicasHand(
            session or self.api.session,
            MinReplicasOptions(most_share=1),
            loads=lambda: said,
            nodes=lambda: nodes_with([0.0] * 10),
            events=self.events,
            excluded=ExcludedOptions(),
            keeps_marks=keeps_marks,
            seconds=5,
        )

    def act(self, hand: MinReplicasHand, at: float = 0.0) -> None:
        self.api.run(hand.act(AHEAD, NOW + at))

    def minimums(self) -> list[int]:
        """Of both; value and record never disagree."""
        found = []
        for one in self.api.items(HPAS):
            there, value = one["metadata"].get("annotations", {}), one["spec"]["minReplicas"]
            assert (ORIGINAL in there) == (RAISED in there)
            assert there.get(RAISED, str(value)) == str(value)
            found.append(value)
        return found

    def annotations(self) -> list[dict[str, str]]:
        return [one["metadata"].get("annotations", {}) for one in self.api.items(HPAS)]

    def patch(self, name: str, **body: Any) -> None:
        self.api.request("PATCH", f"{HPAS}/{name}", body, merge=True)


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    made = Api(plane.kubeconfig)
    made.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    yield made
    made.session.stop()


@pytest.fixture
def world(api: Api) -> Iterator[World]:
    for name in ("s0", "s1"):
        one = manifest(name)
        status = one.pop("status")
        del one["metadata"]["uid"], one["metadata"]["resourceVersion"]
        made = api.request("POST", HPAS, one)
        api.request("PUT", f"{HPAS}/{name}/status", made | {"status": status})
    yield World(api)
    for path in (HPAS, QUOTAS):
        api.request("DELETE", path)


def test_minimums_rise_before_the_load_and_are_restored_after_it(world: World) -> None:
    hand = world.hand()
    world.act(hand)
    assert world.minimums() == [5, 5] and hand.raised == 6
    assert world.annotations() == [{ORIGINAL: "2", RAISED: "5"}] * 2
    steady = world.hand(said=STEADY)  # another leader
    world.act(steady)
    assert world.minimums() == [5, 5], "held for ten minutes"
    world.act(steady, TOP)
    assert world.minimums() == [2, 2] and not any(world.annotations()) and steady.raised == 0
    assert world.events.reasons == ["MinReplicasRaised"] * 2 + ["MinReplicasRestored"] * 2
    assert hand.done == {"raised": 2} and steady.done == {"restored": 2}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(2))
def test_another_goes_on_after_a_kill_at_any_write(world: World, dies_at: int, after: bool) -> None:
    with pytest.raises(Killed):
        world.act(world.hand(Counting(world.api.session, dies_at=dies_at, after=after)))
    assert world.minimums() in ([2, 2], [5, 2], [5, 5])
    world.act(world.hand())
    assert world.minimums() == [5, 5]
    with pytest.raises(Killed):
        world.api.run(world.hand(Counting(world.api.session, dies_at=dies_at, after=after)).retreat())
    world.minimums()
    world.api.run(world.hand().retreat())
    assert world.minimums() == [2, 2] and not any(world.annotations())


def test_what_a_user_sets_meanwhile_stays(world: World) -> None:
    hand = world.hand()
    world.act(hand)
    world.patch("s0", spec={"minReplicas": 3})
    world.patch("s1", metadata={"annotations": {ORIGINAL: None, RAISED: None}}, spec={"minReplicas": 2})
    world.act(hand, 60)
    assert [one["spec"]["minReplicas"] for one in world.api.items(HPAS)] == [3, 2]
    assert [set(one) for one in world.annotations()] == [{LEFT_UNTIL}] * 2
    assert world.events.reasons[2:] == ["MinReplicasTakenOver"] * 2 and hand.raised == 0
    world.act(world.hand(), 120)  # nor does another leader touch it
    world.api.run(hand.retreat())  # as a rollout does
    world.act(world.hand(), 180)
    assert world.minimums() == [3, 2], "it is left alone for a day, not until the next start"
    world.api.run(world.hand(keeps_marks=False).retreat())
    assert world.minimums() == [3, 2] and not any(world.annotations())


def test_one_that_another_writes_to_or_deletes_meanwhile_waits_or_is_gone(world: World) -> None:
    hand = world.hand(Counting(world.api.session, meddle=lambda: world.patch("s0", metadata={"labels": {"x": "y"}})))
    world.act(hand)
    assert world.minimums() == [2, 5] and hand.done == {"conflict": 1, "raised": 1}
    world.act(hand, 60)
    assert world.minimums() == [5, 5]
    gone = Counting(world.api.session, meddle=lambda: world.api.request("DELETE", f"{HPAS}/s0"))
    world.api.run(world.hand(gone).retreat())
    assert world.minimums() == [2]


def test_the_label_of_the_namespace_counts_and_taking_it_off_restores(world: World) -> None:
    for name in ("s0", "s1"):
        world.patch(name, metadata={"labels": {ASKS_LABEL: None if name == "s0" else "false"}})
    hand = world.hand()
    world.act(hand)
    assert world.minimums() == [2, 2]
    space = "/api/v1/namespaces/shop"
    world.api.request("PATCH", space, {"metadata": {"labels": {ASKS_LABEL: "true"}}}, merge=True)
    world.act(hand, 60)
    assert world.minimums() == [5, 2]
    world.api.request("PATCH", space, {"metadata": {"labels": {ASKS_LABEL: None}}}, merge=True)
    world.act(hand, 120)
    assert world.minimums() == [2, 2] and not any(world.annotations())


def test_where_a_quota_leaves_no_room_an_event_says_so_once(world: World) -> None:
    quota = {"metadata": {"name": "q", "namespace": "shop"}, "spec": {"hard": {"pods": "3"}}}
    made = world.api.request("POST", QUOTAS, quota)
    used = {"hard": {"pods": "3"}, "used": {"pods": "2"}}
    world.api.request("PUT", f"{QUOTAS}/q/status", made | {"status": used})
    hand = world.hand()
    world.act(hand)
    world.act(hand, 60)
    assert world.minimums() == [3, 2] and list(hand.kept) == ["there is no room for more pods"]
    assert sorted(world.events.reasons) == ["MinReplicasKept"] * 2 + ["MinReplicasRaised"]


def test_without_rights_it_says_which_are_missing(world: World, powerless: ApiSession) -> None:
    text = refusal(powerless, world.hand(powerless).act(AHEAD, NOW))
    assert "forbidden" in text and "autoscaler-writes/rbac.yaml" in text
    refused = world.hand(Counting(world.api.session, refuses="horizontalpodautoscalers/s0"))
    assert "s0 was not changed" in refusal(world.api.session, refused.act(AHEAD, NOW))
    assert world.minimums() == [2, 5], "one that is refused keeps no other from its turn"
