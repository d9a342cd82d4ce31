"""The curve of a pod that runs for a while only: its level in the half hours of its run, and nothing elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from cluster.predicted.horizon import Horizon
from cluster.predicted.node_curves import gather, node_curves
from cluster.predicted.pod_profiles import ProfileKey, Profiles
from cluster.predicted.pod_runs import Run, expected_run, half_hours, slots_of, under_way
from cluster.predicted.predicted_cluster import PredictedCluster
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY, NETWORK
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo, QosClass
from tests.scorer.live_cluster import at, model, moment, pod_of, service

UNKNOWN = ServiceKey("shop", "Job", "new")
FULL = np.full(5, 40.0)
N_SLOTS = 7 * SLOTS_PER_DAY
PROFILES = Profiles(model())


def horizon(hour: float, day: int = 0) -> Horizon:
    return Horizon.at(moment(hour, day), model().calendar)


def cluster(hour: float = 17.0, profiles: Profiles = PROFILES) -> PredictedCluster:
    predicted = PredictedCluster(profiles, horizon(hour))
    for row in range(3):
        predicted.set_node(row, f"node-{row}", FULL)
    return predicted


def slots(run: Run, of: Horizon) -> tuple[int, int]:
    which = slots_of(half_hours(run, of), of.days)
    return which.start, which.stop


def added(predicted: PredictedCluster, pod: PodInfo, key: ServiceKey, run: Run | None) -> Floats:
    """What the pod adds to node 0: (n_resources, n_slots) base units."""
    before = predicted.load.share(np.array([0]))[0]
    predicted.place(pod, key, 0, 1.0, 4.0, run=run)
    return np.asarray((predicted.load.share(np.array([0]))[0] - before) * FULL[:, None], dtype=np.float64)


@pytest.mark.parametrize(
    ("run", "hour", "expected"),
    [
        (Run(at(17.1), at(17.2)), 17.1, (34, 35)),
        (Run(at(19.8), at(20.3)), 19.8, (39, 41)),
        (Run(at(17.0), at(17.0)), 17.0, (34, 35)),  # at least the half hour under way
        (Run(at(17.0), at(17.5)), 17.0, (34, 35)),  # its end is not in the next one
        (Run(at(9.0), at(9.5)), 17.0, (18, 35)),  # it should have ended long ago, and has not
        (Run(at(-5.0), at(18.0)), 17.0, (0, 36)),  # since yesterday
        (Run(at(17.0), at(17.0, day=9)), 17.0, (34, N_SLOTS)),  # beyond the horizon
        (Run(at(18.5), at(19.0)), 17.0, (34, 38)),  # the clock was set back: it is there all the same
    ],
)
def test_which_half_hours_a_run_touches(run: Run, hour: float, expected: tuple[int, int]) -> None:
    assert slots(run, horizon(hour)) == expected


@pytest.mark.parametrize("seconds", [None, math.nan])
def test_who_runs_on_and_on_has_no_run(seconds: float | None) -> None:
    assert expected_run(at(1), seconds, at(2), None) is None


@pytest.mark.parametrize("seconds", [-math.inf, -5.0, 0.0, 1e300, math.inf])
@pytest.mark.parametrize("started", [None, -1e300, 0.0, 1e300, math.inf])
def test_odd_durations_and_starts_are_harmless(seconds: float, started: float | None) -> None:
    run = expected_run(started, seconds, at(17), None)
    assert run is not None
    first, end = slots(run, horizon(17))
    assert 0 <= first <= 34 < end <= N_SLOTS


def test_half_hours_of_a_run_begin_with_its_binding_and_follow_the_clock() -> None:
    over_midnight = Run(at(23.7), at(24.7))
    today, tomorrow = horizon(23.7), horizon(0.1, day=1)
    assert slots(over_midnight, today) == (47, 50)
    assert slots(over_midnight, tomorrow) == (0, 2)
    hours = half_hours(over_midnight, today)
    assert slots_of(hours, tomorrow.days) == slice(0, 2)
    assert slots_of(hours, tomorrow.days[1:]) == slice(0, 0)  # of days on which it does not run: nothing
    assert under_way(tomorrow) == hours.first + 1
    berlin = Calendar("Europe/Berlin")
    for day in ("2026-03-29", "2026-10-25"):
        midnight = np.datetime64(day).astype("datetime64[s]").astype(float) - 7200
        for step in range(16):
            now = midnight + 1800 * step
            of = Horizon.at(datetime.fromtimestamp(now, UTC), berlin)
            first, end = slots(Run(now, now + 3600), of)
            assert first <= of.slot < end <= of.slot + 5
    bound = Run(at(17), at(17.5))
    assert expected_run(None, 1800.0, at(17.2), bound) == bound
    assert expected_run(None, 1800.0, at(17.6), bound) == Run(at(17.6), at(18.1))
    assert expected_run(None, 1800.0, at(16.0), bound) == Run(at(16.0), at(16.5))  # the clock was set back
    assert expected_run(at(17.1), 1800.0, at(17.2), bound) == Run(at(17.1), at(17.6))


def test_a_run_is_at_its_level_in_its_half_hours_and_at_requests_where_that_is_unknown() -> None:
    predicted = cluster(3.0)
    felt = added(predicted, pod_of(3, "a"), service(3), Run(at(3), at(4)))
    week = PROFILES.mean([service(3)], np.zeros(1), model().calendar.horizon(model().first_day, 7))[0]
    np.testing.assert_allclose(felt[:, 6:8], np.repeat(week.max(axis=1)[:, None], 2, axis=1), rtol=1e-4)
    np.testing.assert_allclose(np.delete(felt, [6, 7], axis=1), 0.0, atol=1e-5)
    assert predicted.unknown_pods == 0
    assert predicted.memory_peak(predicted.placed["uid-a"].profile) == pytest.approx(week[MEMORY].max())
    predicted = cluster(3.0)
    felt = added(predicted, pod_of(None, "a", cpu=2.0, memory=3.0), UNKNOWN, Run(at(3), at(3.1)))
    week = PROFILES.mean_from_requests(2.0, 3.0, model().calendar.horizon(model().first_day, 7))
    np.testing.assert_allclose(felt[:, 6], week.max(axis=1), rtol=1e-4)
    np.testing.assert_allclose(np.delete(felt, 6, axis=1), 0.0, atol=1e-5)
    assert predicted.unknown_pods == 1


def model_of_a_night_job() -> PeakModel:
    """Service 0 has pods at 02:00 only; whatever is said of other hours is made up. Its network was never measured."""
    replicas = {}
    for name in ("replicas_dated", "replicas_day_type"):
        replicas[name] = getattr(model(), name).copy()
        replicas[name][0] = 0.0
        replicas[name][0, :, 4] = 1.0
    usage = {}
    for name in ("usage_dated", "usage_day_type"):
        usage[name] = getattr(model(), name).copy()
        usage[name][0, CPU] = 9.0
        usage[name][0, CPU, :, 4] = 3.0
        usage[name][0, NETWORK] = np.nan
    return replace(model(), **replicas, **usage)


def test_only_half_hours_with_pods_count_and_what_was_never_measured_comes_from_requests() -> None:
    profiles = Profiles(model_of_a_night_job())
    predicted = cluster(13.0, profiles)
    small, large = (pod_of(0, f"a{cpu}", cpu=cpu) for cpu in (0.5, 1.0))
    felt = [added(predicted, pod, service(0), Run(at(13), at(13.1))) for pod in (small, large)]
    cost = np.nan_to_num(profiles.model.per_pod_cost).max(axis=(1, 2))
    expected = 3.0 * float(profiles.model.correction[0, CPU])
    for one, pod in zip(felt, (small, large), strict=True):
        np.testing.assert_allclose(one[CPU, 26], expected, atol=cost[CPU] + 1e-4)
        from_requests = profiles.mean_from_requests(pod.requests["cpu"], 0.5, predicted.horizon.days)
        np.testing.assert_allclose(one[NETWORK, 26], from_requests[NETWORK].max(), rtol=1e-3, atol=1e-5)
    assert felt[1][NETWORK, 26] > felt[0][NETWORK, 26] > 0
    assert predicted.unknown_pods == 0


def test_what_it_uses_now_is_its_level_and_no_count_of_replicas_changes_it() -> None:
    predicted = cluster(17.0)
    predicted.place(pod_of(1, "served"), service(1), 0, 1.0, 4.0)
    before = predicted.pods_now()[0]
    felt = added(predicted, pod_of(1, "a"), service(1), Run(at(17), at(17.1)))
    profile = predicted.placed["uid-a"].profile
    np.testing.assert_allclose(predicted.use_now(profile), felt[:, 34], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(predicted.pods_now()[0] - before, felt[:, 34], rtol=1e-4, atol=1e-5)
    # Near the end of the half hour, too, where others go over to the next one.
    np.testing.assert_array_equal(predicted.use_at(profile, 34.99), predicted.use_now(profile))
    alone = cluster(17.0)
    np.testing.assert_allclose(added(alone, pod_of(1, "a"), service(1), Run(at(17), at(17.1))), felt, atol=1e-4)
    predicted.set_replicas(service(1), 9.0)
    np.testing.assert_allclose(predicted.use_now(profile), felt[:, 34], rtol=1e-4, atol=1e-5)


def test_people_see_runs_in_the_curves_of_nodes_with_their_error() -> None:
    predicted = cluster(10.0)
    days = predicted.horizon.days

    def seen() -> tuple[Floats, Floats]:
        curves = node_curves(PROFILES, predicted.bases, gather(predicted, [0]), days)
        return curves.mean()[0], np.stack([load.std[0] for load in curves.loads])

    predicted.place(pod_of(2, "other"), service(2), 0, 1.0, 4.0)
    mean, std = seen()
    predicted.place(pod_of(None, "unknown", cpu=4.0, memory=4.0), UNKNOWN, 0, 1.0, 1.0, run=Run(at(10), at(11)))
    predicted.place(pod_of(4, "known"), service(4), 0, 1.0, 4.0, run=Run(at(10), at(11)))
    with_mean, with_std = seen()
    assert (with_mean[:, 20:22] > mean[:, 20:22]).all() and (with_std[:, 20:22] > std[:, 20:22]).all()
    outside = np.delete(np.arange(N_SLOTS), [20, 21])
    np.testing.assert_allclose(with_mean[:, outside], mean[:, outside], rtol=1e-6)
    np.testing.assert_allclose(with_std[:, outside], std[:, outside], rtol=1e-6)
    key = ProfileKey(None, 4.0, 4.0, half_hours(Run(at(10), at(11)), predicted.horizon))
    assert with_std[CPU, 20] > 0.99 * PROFILES.run_level(key)[CPU]  # of the unknown one: all that it uses


def test_runs_that_last_share_a_curve_with_those_expected_to_end_then() -> None:
    predicted = cluster(8.0)
    short, long, third = (pod_of(1, name) for name in ("short", "long", "third"))
    predicted.place(short, service(1), 0, 1.0, 4.0, run=Run(at(8), at(8.4)))
    predicted.place(long, service(1), 1, 1.0, 4.0, run=Run(at(8), at(8.9)))
    for slot in (17, 18, 19):
        predicted.set_slot(slot)
        asked = predicted.known_profile(third, service(1), Run(at(8), at(8.1)))
        assert asked in {predicted.placed[pod.uid].profile for pod in (short, long)}
        load = predicted.load.snapshot()
        np.testing.assert_allclose((load.share - load.base)[0], (load.share - load.base)[1], atol=1e-6)
        assert tuple(np.flatnonzero(load.share[0, CPU] - load.base[0, CPU] > 1e-6)) == tuple(range(16, slot + 1))
    predicted.remove(short.uid)
    predicted.set_slot(20)
    assert predicted.known_profile(third, service(1), Run(at(8), at(8.1))) == predicted.placed[long.uid].profile


SERVICES = [service(0), service(1), UNKNOWN]
RUNS = st.one_of(
    st.none(),
    st.tuples(st.floats(0, 30), st.floats(0, 40)).map(lambda run: Run(at(run[0]), at(run[0] + run[1]))),
)
EVENTS = st.one_of(
    st.tuples(st.just("place"), st.integers(0, 6), st.sampled_from(SERVICES), st.integers(0, 2), RUNS),
    st.tuples(st.just("place"), st.integers(0, 6), st.sampled_from(SERVICES), st.integers(0, 2), RUNS),
    st.tuples(st.just("remove"), st.integers(0, 6)),
    st.tuples(st.just("slot"), st.integers(1, 5)),
    st.tuples(st.just("ask"), st.sampled_from(SERVICES), RUNS),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_any_sequence_of_runs_gives_what_is_built_anew_from_the_end_state(events: list[tuple[object, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cluster.predicted.predicted_cluster._MOST_IDLE_PROFILES", 2)  # rows go from one run to another
        predicted, slot = cluster(8.0), 16
        there: dict[str, tuple[PodInfo, ServiceKey, int, Run | None]] = {}
        for event in events:
            match event:
                case ("place", int(number), ServiceKey() as key, int(row), (Run() | None) as run):
                    pod = pod_of(None, f"p{number}", cpu=0.5 + number % 2, memory=1.0, qos=QosClass(number % 3))
                    predicted.place(pod, key, row, 1.0, 4.0, run=run)
                    assert predicted.has_placed(pod, key, row, 1.0, None, run)
                    there[pod.uid] = (pod, key, row, run)
                case ("remove", int(number)):
                    predicted.remove(f"uid-p{number}")
                    there.pop(f"uid-p{number}", None)
                case ("slot", int(step)):
                    slot = min(slot + step, SLOTS_PER_DAY - 1)
                    predicted.set_slot(slot)
                case ("ask", ServiceKey() as key, (Run() | None) as run):
                    predicted.profile(pod_of(None, "asked"), key, 4.0, run)
        expected = cluster(slot / 2)
        for pod, key, row, run in there.values():
            expected.place(pod, key, row, 1.0, 4.0, run=run)
        counted = predicted.horizon.weights() > 0
        for mine, anew in (
            (predicted.load.share(slice(0, 3))[:, :, counted], expected.load.share(slice(0, 3))[:, :, counted]),
            (predicted.pods_now(), expected.pods_now()),
            (predicted.qos_memory, expected.qos_memory),
        ):
            np.testing.assert_allclose(mine, anew, rtol=1e-4, atol=1e-4)
        assert predicted.unknown_pods == expected.unknown_pods
        assert len(predicted.keys) <= 2 + len(SERVICES) + 7 + 1
