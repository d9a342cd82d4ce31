"""A pod whose owner has a generated name finds the group that the model knows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster.predicted.horizon import Horizon
from cluster.predicted.node_curves import gather
from cluster.predicted.pod_bounds import NO_NODE
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.pod_runs import Run
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.runs.expected import ExpectedRuns, RunSource
from cluster.runs.run_times import RunTimes
from forecast.model import PeakModel
from forecast.service_key import Owner, ServiceKey
from tests.scorer.live_cluster import model, moment, pod_of, service

GROUP, NEW = ServiceKey("shop", "Workflow", "etl-*"), ServiceKey("shop", "Workflow", "etl-a1b2c")
FULL = np.full(5, 40.0)


def with_group() -> PeakModel:
    """Service 0 is a group of one-off owners, whose pods run for 25 minutes."""
    made = model()
    seconds, count = made.run_seconds.copy(), made.run_count.copy()
    seconds[0], count[0] = (1500.0, 2400.0), 100
    return replace(made, services=(GROUP, *made.services[1:]), run_seconds=seconds, run_count=count)


PROFILES = Profiles(with_group())
POD = replace(pod_of(0, "etl-a1b2c-1"), owner=Owner("Workflow", "etl-a1b2c"))


def test_both_roads_end_at_the_same_service() -> None:
    assert PROFILES.known_as(NEW) == GROUP and PROFILES.knows(NEW) and PROFILES.is_expected(NEW)
    assert PROFILES.key_of(POD, NEW, None, NO_NODE).service == GROUP
    assert PROFILES.known_as(service(1)) == service(1) and not PROFILES.is_expected(service(1))
    stranger = ServiceKey("other", "Workflow", "etl-a1b2c")
    assert PROFILES.known_as(stranger) is None and not PROFILES.knows(stranger)


def test_its_pods_run_as_long_as_those_before_them() -> None:
    runs = ExpectedRuns(RunTimes())
    assert runs.seconds(POD, NEW) is None, "no model: nothing says that it ends"
    runs.use_model(PROFILES.runs)
    assert runs.seconds(POD, NEW) == 1500.0 and runs.of(POD, NEW).source is RunSource.MODEL
    assert runs.seconds(pod_of(1, "web"), service(1)) is None


def test_it_counts_for_placement_while_it_runs_and_its_node_is_not_expected_to_use_more() -> None:
    predicted = PredictedCluster(PROFILES, Horizon.at(moment(17.0), PROFILES.model.calendar))
    predicted.set_node(0, "node-0", FULL)
    before, now = predicted.load.share(np.array([0]))[0].copy(), predicted.pods_now()[0].copy()
    start = moment(17.0).timestamp()
    predicted.place(POD, NEW, 0, 1.0, 1.0, run=Run(start, start + 1500.0))
    added = predicted.load.share(np.array([0]))[0] - before
    assert (added[:, 34] > 0).all() and (added[:, 36:] == 0).all(), "bursts of them are placed apart"
    assert (predicted.pods_now()[0] == now).all(), "measured usage is held against a base that has them"
    assert not len(gather(predicted, [0]).pods), "the base has them: not twice"
    predicted.remove(POD.uid)
    np.testing.assert_allclose(predicted.load.share(np.array([0]))[0], before, atol=1e-6)
