"""Which pods a relief evicts, and when it stops. The API server is a function that answers as it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from forecast.hot_share import HOT_SHARE
from forecast_scheduler.commands.live_placing import Placing
from forecast_scheduler.commands.rebalance.open_planning import Planning
from forecast_scheduler.commands.relieve.carried_out import evict_one_by_one
from forecast_scheduler.commands.relieve.relieve_node import Relieving
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import extender_options
from kube.client.eviction import Evicted, Eviction
from kube.objects.objects import PodInfo
from placement.policies.policy import OnePolicyForAll
from rebalancer.hot_node import HotNodeRelief, ReliefMaker
from scorer.scoring_policy import scoring_policy
from tests.rebalancer.hot_cluster import hot_cluster, maker_of
from tests.scorer.scorer_at import LiveScorer

HOT = "node-0"


class Evening:
    """node-0 is hot; each pod that is evicted has a ready replacement on node-1 at once."""

    def __init__(self) -> None:
        settings = Settings()
        self.tested: LiveScorer = hot_cluster(size=16.0)
        self.maker = maker_of(self.tested)
        scorer = self.tested.scorer
        policies = OnePolicyForAll(extender_options(settings).policy(scoring_policy(scorer.options)))
        planning = Planning(scorer, self.maker, Placing(scorer, settings), policies)
        self.relieving, self.settings = Relieving(planning, settings, 10), settings
        self.asked: list[str] = []
        self.said: list[str] = []

    def relief(self) -> HotNodeRelief:
        maker = ReliefMaker(self.tested.scorer.tables, self.maker, HOT_SHARE, lambda pod: "node-1", 10)
        return maker.relieve(HOT)

    def carry_out(self, relief: HotNodeRelief, *answers: Eviction) -> list[str]:
        """Return what is said. answers: to the first evictions; later ones are accepted."""
        given = list(answers)

        def evict(pod: PodInfo) -> Eviction:
            self.asked.append(pod.name)
            answer = given.pop(0) if given else Eviction(Evicted.GOING)
            if answer.outcome is Evicted.GOING:
                self.tested.delete(pod)
                self.tested.put(replace(pod, uid=f"{pod.uid}-new", name=f"{pod.name}-new", node="node-1"))
            return answer

        evict_one_by_one(self.relieving, relief, self.settings, evict, self.said.append)
        return self.said


def _names(relief: HotNodeRelief) -> Sequence[str]:
    return [one.pod.name for one in relief.moves]


def test_pods_go_one_after_the_other_until_the_node_is_cool() -> None:
    evening = Evening()
    relief = evening.relief()
    said = evening.carry_out(relief)
    assert evening.asked == _names(relief) and len(evening.asked) > 1
    assert "is ready on node-1: as expected" in said[1]
    assert said[-1].startswith(f"{len(evening.asked)} pods were moved")


def test_a_pod_that_its_budget_keeps_stays_and_the_next_one_goes() -> None:
    evening = Evening()
    relief = evening.relief()
    said = evening.carry_out(relief, Eviction(Evicted.REFUSED, "its budget allows no disruption"))
    assert said[0] == f"shop/{_names(relief)[0]} stays: its budget allows no disruption"
    assert evening.asked == _names(relief)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Eviction(Evicted.UNKNOWN, "timed out"), "may have been evicted: timed out: nothing more is evicted"),
        (Eviction(Evicted.NOT_NOW, "403: grant create"), "stays: 403: grant create: nothing more is evicted"),
    ],
)
def test_nothing_more_is_evicted_if_it_is_not_known_what_became_of_a_pod(answer: Eviction, words: str) -> None:
    evening = Evening()
    relief = evening.relief()
    said = evening.carry_out(relief, answer)
    assert evening.asked == _names(relief)[:1]
    assert said[0].endswith(words) and said[-1].startswith("0 pods were moved")


def _is_gone(evening: Evening, pod: PodInfo) -> None:
    evening.tested.delete(pod)


def _is_the_last_replica(evening: Evening, pod: PodInfo) -> None:
    """The others of its service are deleted; its owner lets the rebalancer start a second one first."""
    with evening.tested.scorer.tables.reading() as cluster:
        others = [one for one in cluster.state.pods.values() if one.owner == pod.owner and one.uid != pod.uid]
    for one in others:
        evening.tested.delete(one)
    evening.tested.put(replace(pod, annotations={"forecast-scheduler.io/move-by-surge": "true"}))


@pytest.mark.parametrize(
    ("meanwhile", "words"),
    [
        (_is_gone, "stays: it is gone"),
        (_is_the_last_replica, "stays: a second replica must start first"),
    ],
)
def test_a_pod_that_may_not_go_any_more_is_left_alone(
    meanwhile: Callable[[Evening, PodInfo], None], words: str
) -> None:
    evening = Evening()
    relief = evening.relief()
    first = relief.moves[0].pod
    meanwhile(evening, first)
    assert any(line.startswith(f"shop/{first.name} {words}") for line in evening.carry_out(relief))
    assert first.name not in evening.asked
