"""The rule `configured` places as the scorer would, with the weights, capacities and policies of the user."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import pytest

from forecast.fit import fit
from forecast.hot_share import HOT_SHARE
from forecast.model import PeakModel
from forecast.resources import LOG
from forecast.service_key import service_of_pod
from kube.objects.objects import PodInfo
from scorer.options import ScorerOptions
from scorer.replay.by_scorer import ByScorer, ScorerSetup
from scorer.replay.preparation import forecast_with
from scorer.replay.recording import record
from scorer.replay.replay import CONFIGURED, RULES, Replay, replay
from scorer.replay.window import replay_window
from scorer.scores.score_settings import ScoreOptions
from scorer.scoring_policy import ChosenScoring, ScoringPolicy, scoring_policy
from tests.scorer.replay.simple_forecast import simple_forecast
from tests.scorer.replay.small_cluster import REPLICAS, small_cluster

DEFAULT = ScorerSetup(ScorerOptions())
STACKING = ScorerSetup(ScorerOptions(scores=ScoreOptions(weights={"most_allocated": 1.0})))


@lru_cache(maxsize=1)
def model() -> PeakModel:
    """Of the days before the placement; the tests share the fit."""
    history, _ = small_cluster()
    return fit(history.before(replay_window(history).first_day))


def played(setup: ScorerSetup | None) -> Replay:
    return replay(
        *small_cluster(), forecast_with(lambda known: model()), seed=3, ladder=False, setup=setup, hot=HOT_SHARE
    )


@pytest.fixture(scope="module")
def by_default() -> Replay:
    return played(DEFAULT)


class OneServiceStacks:
    """A policy for the pods of service-0, the settings for all others."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._settings = ChosenScoring(scoring_policy(ScorerOptions()))
        stacks = scoring_policy(STACKING.options)
        self._stacks = ChosenScoring(ScoringPolicy("stack", stacks.weights, stacks.scores), "rule 1")

    def scoring(self, pod: PodInfo) -> ChosenScoring:
        self.seen.add(pod.namespace)
        return self._stacks if pod.name.startswith("service-0-") else self._settings


def test_the_scorer_stands_before_the_oracle_close_to_the_forecast_and_by_its_weights_and_policies(
    by_default: Replay,
) -> None:
    ours, forecast = by_default.figures[CONFIGURED], by_default.figures["forecast"]
    native = by_default.figures["native"]
    assert abs(ours.peak_cv["cpu"] - forecast.peak_cv["cpu"]) < 0.25 * (native.peak_cv["cpu"] - forecast.peak_cv["cpu"])
    assert ours.unplaced == forecast.unplaced
    assert list(by_default.figures) == [*RULES[:-1], CONFIGURED, "oracle"]
    assert CONFIGURED not in played(None).figures
    assert (
        CONFIGURED
        not in replay(*small_cluster(), simple_forecast, days=2, ladder=False, setup=DEFAULT, hot=HOT_SHARE).figures
    )
    # Stacking by requests fills the nodes one after the other.
    stacked = played(STACKING)
    assert stacked.figures[CONFIGURED].peak_cv["cpu"] > 2 * by_default.figures[CONFIGURED].peak_cv["cpu"]
    for rule in RULES:
        np.testing.assert_array_equal(stacked.playbacks[rule].node, by_default.playbacks[rule].node)
    policies = OneServiceStacks()
    otherwise = played(ScorerSetup(ScorerOptions(), policies))
    assert policies.seen == {"shop"}
    before, after = (run.playbacks[CONFIGURED].node for run in (by_default, otherwise))
    assert (before != after).any()


def test_capacities_of_the_settings_and_every_kind_of_owner_are_found() -> None:
    history, pods = small_cluster()
    assert np.isnan(history.capacity[:, LOG]).all()
    window = replay_window(history)
    recording = record(history, pods, window, hot=HOT_SHARE)
    setup = ScorerSetup(ScorerOptions(capacities=MappingProxyType({"log": 1e6})))
    rule = ByScorer(setup, model(), history, window, recording)
    with rule._scorer.tables.reading() as cluster:
        np.testing.assert_allclose(cluster.capacity[:, LOG], 1e6)
    history, pods = small_cluster()
    window = replay_window(history)
    kinds = ("Deployment", "Rollout", "CronJob", "Job", "Pod")
    services = tuple(replace(key, kind=kind) for key, kind in zip(history.services, kinds, strict=True))
    changed = replace(history, services=services)
    recording = record(changed, replace(pods, services=services), window, hot=HOT_SHARE)
    rule = ByScorer(DEFAULT, replace(model(), services=services), changed, window, recording)
    for index in np.cumsum(REPLICAS).tolist():
        pod = rule._pod(index - 1)
        found = service_of_pod(pod.namespace, pod.name, pod.owner, pod_labels=pod.labels)
        assert found == services[int(recording.service[index - 1])]
