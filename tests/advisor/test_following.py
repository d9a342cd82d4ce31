"""What the advisor believes of nominations, from where its pods went, and what it does about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from advisor.followed_advice import (
    CANARIES,
    EVERY_SECONDS,
    MISSES,
    NEAR_POINTS,
    PATIENCE_SECONDS,
    RETRY_SECONDS,
    CanaryOutcome,
    Following,
    NominationTrust,
    Way,
    as_canary,
)
from placement.decisions.decision import Advice
from scorer.highest_peak import share_of
from testing.settable_clock import SettableClock
from tests.placement.decisions.made_up import advice, expecting


class World:
    """A kube-scheduler that follows nominations or does not, and pods by name."""

    def __init__(self) -> None:
        self.clock, self.version, self.follows = SettableClock(0.0), (1, 36), True
        self.following = Following(lambda: self.version, clock=self.clock)
        self.n_pods = 0

    def advised(self, points: dict[str, int], namespace: str) -> tuple[str, Advice]:
        self.n_pods += 1
        uid = f"uid-{self.n_pods}"
        return uid, advice(points, uid=uid, pod=f"{namespace}/{uid}")

    def start(self, namespace: str = "shop", *, margin: int = 10) -> tuple[str, Way, str]:
        """Advise on a pod and write that. Returns its UID, how, and where it is nominated."""
        uid, said = self.advised({"n1": 500, "n2": 500 - margin}, namespace)
        way = self.following.way(uid, said)
        node = "n2" if way is Way.CANARY else "n1"
        if way.nominates:
            self.following.nominated(uid, namespace, node, way)
        return uid, way, node

    def pod(self, namespace: str = "shop", *, margin: int = 10, kept_away: bool = False) -> Way:
        """The same, and the pod is bound at once."""
        uid, way, node = self.start(namespace, margin=margin)
        at = node if self.follows else "n9"
        self.following.bound(uid, at, lambda nominated: kept_away)
        return way

    def state(self) -> NominationTrust:
        return self.following.state


def test_the_first_pod_is_a_canary_and_so_is_one_every_hour_and_of_a_new_version() -> None:
    world = World()
    assert world.state() is NominationTrust.UNKNOWN
    assert [world.pod() for _ in range(3)] == [Way.CANARY, Way.NOMINATE, Way.NOMINATE]
    assert world.state() is NominationTrust.FOLLOWED
    world.clock.now = EVERY_SECONDS - 1
    assert world.pod() is Way.NOMINATE
    world.clock.now = EVERY_SECONDS
    assert [world.pod(), world.pod()] == [Way.CANARY, Way.NOMINATE]
    world.version = (1, 37)
    assert [world.pod(), world.pod()] == [Way.CANARY, Way.NOMINATE]
    assert world.following.canaries == {CanaryOutcome.FOLLOWED: 3}


def test_a_canary_takes_a_node_that_is_nearly_as_good_unless_none_comes_in_time() -> None:
    world = World()
    assert world.pod(margin=NEAR_POINTS + 1) is Way.NOMINATE
    world.clock.now = PATIENCE_SECONDS
    assert world.pod(margin=NEAR_POINTS + 1) is Way.CANARY
    other = World()
    assert other.following.way("a", None) is Way.NOMINATE
    assert other.following.way("b", advice({"n1": 3}, uid="b")) is Way.NOMINATE, "there is no second node"
    assert other.pod(margin=NEAR_POINTS) is Way.CANARY


def test_of_pods_that_come_together_one_is_a_canary_and_one_that_is_never_bound_is_given_up() -> None:
    world = World()
    uid, way, _ = world.start()
    assert way is Way.CANARY
    assert [world.pod() for _ in range(20)] == [Way.NOMINATE] * 20
    world.following.given_up(uid)
    assert world.start()[1] is Way.CANARY, "the first one was not written"
    world.clock.now += 61
    assert world.pod() is Way.NOMINATE, "not the very next pod after one that says nothing"
    world.clock.now += PATIENCE_SECONDS
    assert world.pod() is Way.CANARY
    assert world.following.canaries == {CanaryOutcome.UNCLEAR: 1, CanaryOutcome.FOLLOWED: 1}


def test_preferences_take_over_after_three_canaries_in_a_row_and_canaries_bring_nominations_back() -> None:
    world = World()
    assert world.pod("a") is Way.CANARY
    world.follows = False
    world.version = (1, 37)
    assert world.pod("a") is Way.CANARY
    assert world.state() is NominationTrust.DOUBTED
    assert world.pod("a") is Way.BOTH, "in doubt pods have both, and canaries are of other tenants"
    assert [world.pod("b"), world.pod("c")] == [Way.CANARY, Way.CANARY]
    assert world.state() is NominationTrust.IGNORED
    assert world.pod("d") is Way.PREFER
    assert (RETRY_SECONDS, CANARIES) == (60.0, 3)
    for seconds in (60, 120, 240, 480, 960, 1920, 3600, 3600):
        world.clock.now += seconds - 1
        assert world.pod() is Way.PREFER
        world.clock.now += 1
        assert world.pod(margin=10, namespace=str(seconds) + str(world.n_pods)) is Way.CANARY
        assert world.state() is NominationTrust.IGNORED
    world.follows = True
    world.clock.now += 3600
    assert [world.pod("e"), world.pod("e")] == [Way.CANARY, Way.NOMINATE]
    assert world.state() is NominationTrust.FOLLOWED


def test_where_there_is_one_namespace_only_its_pods_decide_after_some_seconds() -> None:
    world = World()
    world.follows = False
    assert [world.pod(), world.pod()] == [Way.CANARY, Way.BOTH]
    for expected in (NominationTrust.DOUBTED, NominationTrust.IGNORED):
        assert world.pod() is Way.BOTH
        world.clock.now += PATIENCE_SECONDS
        assert world.pod() is Way.CANARY
        assert world.state() is expected


def test_pods_that_go_elsewhere_one_after_the_other_call_for_a_canary() -> None:
    world = World()
    world.pod()
    world.follows = False
    assert [world.pod() for _ in range(MISSES - 1)] == [Way.NOMINATE] * (MISSES - 1)
    world.follows = True
    world.pod()
    world.follows = False
    assert [world.pod() for _ in range(MISSES)] == [Way.NOMINATE] * MISSES
    assert world.state() is NominationTrust.DOUBTED
    world.follows = True
    assert [world.pod("b"), world.pod("b")] == [Way.CANARY, Way.NOMINATE]
    assert world.state() is NominationTrust.FOLLOWED


def test_a_pod_that_a_known_filter_kept_away_says_nothing() -> None:
    world = World()
    world.follows = False
    assert [world.pod(kept_away=True) for _ in range(30)] == [Way.CANARY] + [Way.NOMINATE] * 29
    assert world.state() is NominationTrust.UNKNOWN
    assert world.following.canaries == {CanaryOutcome.UNCLEAR: 1}


@pytest.mark.parametrize("is_canary", [False, True])
def test_nominations_that_the_api_server_refuses_are_as_good_as_ignored(is_canary: bool) -> None:
    world = World()
    if not is_canary:
        world.pod()
    for name in ("a", "b", "c"):
        uid, said = world.advised({"n1": 500, "n2": 490}, name)
        assert (world.following.way(uid, said) is Way.CANARY) or not is_canary
        world.following.refused(uid, name)
    assert world.state() is NominationTrust.IGNORED
    assert world.following.canaries[CanaryOutcome.REFUSED] == CANARIES


def test_one_tenant_whose_pods_are_kept_away_by_what_nobody_knows_does_not_decide_for_the_others() -> None:
    """Its pods come first each time; those of another tenant follow nominations."""
    world = World()
    for _ in range(200):
        world.clock.now += 5
        world.follows = False
        world.pod("odd")
        world.follows = True
        world.pod("shop")
        assert world.state() is not NominationTrust.IGNORED


def test_a_canary_names_its_second_node_in_place_of_the_best() -> None:
    said = as_canary(advice({"n1": 30, "n2": 20}), expecting(0.4))
    assert (said.best, said.runner_up, said.margin, share_of(said.peak())) == ("n2", "n1", None, 0.4)


_NEVER: Callable[[str], bool] = lambda node: False  # noqa: E731


def test_pods_that_were_not_nominated_say_nothing_and_open_ones_are_bounded() -> None:
    world = World()
    world.following.bound("unknown", "n1", _NEVER)
    for _ in range(10_100):
        world.start()
    assert len(world.following._open) == 10_000
