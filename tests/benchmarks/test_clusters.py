"""Building clusters: the parts on made-up curves, the builders on the traces where they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.clusters.__main__ import main
from benchmarks.clusters.autoscaling import autoscaled_replicas, lives
from benchmarks.clusters.cluster import Cluster
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.placement import native_scores, place_natively
from benchmarks.clusters.plain import plain_cluster
from benchmarks.clusters.pods import log_uniform, normalised, pod_name, real_residuals, round_mantissa, wrong_requests
from benchmarks.clusters.read_history import read_cluster
from benchmarks.clusters.replicated import NodeSizes, asd_cluster, bitbrains_cluster
from benchmarks.clusters.scenarios import (
    campaign,
    cut_off_slot,
    daily_trend,
    doubled_replicas,
    month_ends,
    moved_services,
    new_services,
    public_holiday,
    releases,
    two_countries,
)
from benchmarks.clusters.traces import Curves, read_asd, read_bitbrains
from forecast.arrays import Floats32
from forecast.resources import CPU, DISK, MEMORY, NETWORK
from tests.traces import TRACES, needs_traces
from trainer.history.events_file import read_events
from trainer.history.files import HistoryFiles


def wave(n_days: int, *, peak_slot: int = 40, noise: float = 0.05, seed: int = 0) -> Floats32:
    """A day's wave with a little noise, 0.2..1."""
    rng = np.random.default_rng(seed)
    slot = np.arange(n_days * 48)
    shape = 0.6 + 0.4 * np.cos(2 * np.pi * (slot - peak_slot) / 48)
    return (shape * (1 + noise * rng.standard_normal(len(slot)))).astype(np.float32)


def made_up_asd(n_days: int = 21) -> Curves:
    entities = tuple(f"asd-omi-{server}/m{metric}" for server in (1, 2) for metric in (10, 11, 12))
    values = np.stack([wave(n_days, seed=i) for i in range(len(entities))])
    return Curves(entities, pd.Timestamp("2020-01-06", tz="UTC"), {"cpu": values})


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return asd_cluster(made_up_asd(), seed=1, node_sizes=NodeSizes.MIXED, n_pods=120, n_nodes=9)


@given(st.floats(1e-6, 1e12), st.integers(1, 22))
def test_rounding_the_mantissa_errs_by_at_most_half_a_bit(value: float, bits: int) -> None:
    rounded = float(round_mantissa(np.array([value], dtype=np.float32), bits)[0])
    assert abs(rounded - np.float32(value)) <= np.float32(value) * 2.0 ** -(bits + 1) * (1 + 1e-6)


def test_rounding_keeps_nan_and_refuses_no_bits() -> None:
    assert np.isnan(round_mantissa(np.array([np.nan], dtype=np.float32), 7)).all()
    with pytest.raises(ValueError, match=r"1\.\.22"):
        round_mantissa(np.array([1.0]), 0)


def test_sizes_lie_between_their_bounds_and_spread_over_the_logarithm() -> None:
    sizes = log_uniform(np.random.default_rng(0), 0.2, 4.0, 4000)
    assert sizes.min() >= 0.2
    assert sizes.max() <= 4.0
    assert np.median(sizes) == pytest.approx(np.sqrt(0.2 * 4.0), rel=0.1)


def test_a_curve_is_scaled_to_its_high_percentile_and_cut_above() -> None:
    curve = wave(14)
    curve[100] = 50.0
    scaled = normalised(curve)
    assert np.quantile(scaled, 0.99) == pytest.approx(1.0, abs=0.1)
    assert scaled.max() == pytest.approx(1.25)
    with pytest.raises(ValueError, match="without load"):
        normalised(np.zeros(96, dtype=np.float32))


def test_requests_are_mostly_too_large_but_not_always() -> None:
    requests = wrong_requests(np.random.default_rng(0), np.ones(5000))
    assert np.median(requests) == pytest.approx(np.exp(0.4), rel=0.05)
    assert 0.15 < (requests < 1).mean() < 0.35


def test_residuals_have_unit_variance_and_drop_flat_curves() -> None:
    residuals = real_residuals(np.stack([wave(7), np.ones(7 * 48, dtype=np.float32)]))
    assert residuals.shape == (1, 7 * 48)
    assert residuals.std() == pytest.approx(1.0, abs=0.05)


def test_pod_names_look_like_those_of_kubernetes() -> None:
    name = pod_name(np.random.default_rng(0), "cart-##########-#####")
    assert name.startswith("cart-")
    assert len(name) == len("cart-7d9f8b6c5d-x2x4z")
    assert not set("aeiou01") & set(name.removeprefix("cart-"))


def test_replicas_follow_load_up_at_once_and_down_after_a_while() -> None:
    load = np.array([2.0, 8.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    replicas = autoscaled_replicas(load, 1.0, minimum=1, maximum=6, stabilisation_slots=3)
    assert replicas.tolist() == [2, 6, 6, 6, 6, 2, 2]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_lives_add_up_to_the_replica_counts(counts: list[int]) -> None:
    first, end = lives(np.array(counts))
    slots = np.arange(len(counts))
    alive = (slots >= first[:, None]) & (slots < end[:, None])
    assert alive.sum(axis=0).tolist() == counts


def test_native_scores_prefer_the_empty_and_the_balanced_node() -> None:
    allocatable = np.array([[8.0, 32.0], [8.0, 32.0], [8.0, 32.0]])
    requested = np.array([[4.0, 16.0], [0.0, 0.0], [4.0, 8.0]])
    scores = native_scores(requested, np.array([1.0, 4.0]), allocatable)
    assert scores.argmax() == 1
    # A pod of the node's own shape leaves the imbalance as it is: 75 for balance.
    assert scores[1] == np.floor(100 * (1 - 0.125)) + 75


def test_native_placement_never_exceeds_allocatable_and_frees_what_dies() -> None:
    rng = np.random.default_rng(0)
    allocatable = np.array([[2.0, 8.0], [2.0, 8.0]])
    requests = np.tile([1.0, 4.0], (8, 1))
    first = np.repeat([0, 5], 4)
    node_of = place_natively(rng, requests, allocatable, first, np.repeat([5, 9], 4))
    for generation in (node_of[:4], node_of[4:]):
        assert np.bincount(generation).tolist() == [2, 2]
    with pytest.raises(ValueError, match="fits on no node"):
        place_natively(rng, requests, allocatable, first, np.full(8, 9))


def test_equal_and_mixed_nodes_have_the_same_total() -> None:
    total = {}
    for sizes in NodeSizes:
        built = asd_cluster(made_up_asd(), seed=1, node_sizes=sizes, n_pods=120, n_nodes=9)
        total[sizes] = built.capacity[:, CPU].sum()
        ratios = sorted(set(np.round(built.capacity[:, CPU] / built.capacity[:, CPU].min(), 6)))
        assert ratios == ([1.0] if sizes is NodeSizes.EQUAL else [1.0, 2.0, 4.0])
    assert total[NodeSizes.EQUAL] == pytest.approx(total[NodeSizes.MIXED])


def test_the_cluster_is_as_loaded_as_wanted(cluster: Cluster) -> None:
    load = cluster.node_totals()[:, CPU].sum(axis=0) / cluster.capacity[:, CPU].sum()
    assert np.quantile(load, 0.99) == pytest.approx(0.70, abs=0.02)


def test_replicas_are_alike_but_not_identical(cluster: Cluster) -> None:
    service = int(np.bincount(cluster.service_of).argmax())
    mine = cluster.usage[cluster.service_of == service, CPU]
    correlation = np.corrcoef(mine)
    assert correlation.min() > 0.8
    assert (mine.mean(axis=1).std() / mine.mean()) > 0.02


def test_the_same_seed_gives_the_same_cluster_and_another_seed_another(cluster: Cluster) -> None:
    again = asd_cluster(made_up_asd(), seed=1, node_sizes=NodeSizes.MIXED, n_pods=120, n_nodes=9)
    other = asd_cluster(made_up_asd(), seed=2, node_sizes=NodeSizes.MIXED, n_pods=120, n_nodes=9)
    assert again.pods == cluster.pods
    np.testing.assert_array_equal(again.usage, cluster.usage)
    np.testing.assert_array_equal(again.node_of, cluster.node_of)
    assert other.pods != cluster.pods


def test_a_cluster_survives_being_written_and_read(cluster: Cluster, tmp_path: Path) -> None:
    write_history(cluster, tmp_path, mantissa_bits=22)
    back = read_cluster(tmp_path)
    order = [back.pods.index(pod) for pod in cluster.pods]
    np.testing.assert_allclose(back.usage[order], cluster.usage, rtol=1e-6)
    np.testing.assert_array_equal(back.node_of[order], cluster.node_of)
    np.testing.assert_allclose(back.capacity, cluster.capacity)
    np.testing.assert_allclose(back.node_totals(), cluster.node_totals(), rtol=1e-3)
    assert sorted(s.owner for s in back.services) == sorted(s.owner for s in cluster.services)
    assert (back.start, back.time_zone) == (cluster.start, cluster.time_zone)


def test_slots_without_any_measurement_have_no_rows(cluster: Cluster, tmp_path: Path) -> None:
    usage, base = cluster.usage.copy(), cluster.base.copy()
    usage[:, :, 48:96] = np.nan
    base[:, :, 48:96] = np.nan
    write_history(replace(cluster, usage=usage, base=base), tmp_path)
    outage = cluster.timestamps()[48:96]
    for file in ("usage", "nodes"):
        times = pd.read_parquet(tmp_path / f"{file}.parquet", columns=["timestamp"])["timestamp"]
        assert not times.isin(outage).any()
        assert times.nunique() == cluster.n_slots - 48


def test_the_cut_off_is_the_last_four_o_clock_that_leaves_seven_days(cluster: Cluster) -> None:
    slot = cut_off_slot(cluster)
    assert cluster.timestamps()[slot].hour == 4
    assert 7 * 48 <= cluster.n_slots - slot < 8 * 48


def test_doubled_replicas_keep_the_load_of_the_service(cluster: Cluster) -> None:
    changed = doubled_replicas(cluster, np.random.default_rng(0))
    moment = cut_off_slot(cluster) - 4
    before = np.bincount(changed.service_of[changed.first == 0], minlength=len(cluster.services))
    after = np.bincount(changed.service_of, minlength=len(cluster.services))
    doubled = after == 2 * before
    assert 0.2 < doubled.mean() < 0.5
    for service in range(len(cluster.services)):
        was = np.nansum(cluster.usage[cluster.service_of == service, CPU], axis=0)
        now = np.nansum(changed.usage[changed.service_of == service, CPU], axis=0)
        np.testing.assert_allclose(now, was, rtol=1e-4)
    assert set(changed.first[len(cluster.pods) :]) == {moment}
    assert len(set(changed.pods)) == len(changed.pods)


def test_new_services_have_no_past_and_reach_their_load_at_the_cut_off(cluster: Cluster) -> None:
    changed = new_services(cluster, np.random.default_rng(0))
    cut_off = cut_off_slot(cluster)
    young = changed.first > 0
    assert 0 < young.sum() < len(young)
    assert (changed.first[young] == cut_off - 3 * 48).all()
    assert np.isnan(changed.usage[young, :, : cut_off - 3 * 48]).all()
    np.testing.assert_array_equal(changed.usage[:, :, cut_off:], cluster.usage[:, :, cut_off:])


def test_a_holiday_lies_in_the_test_week_and_another_one_before(cluster: Cluster) -> None:
    changed = public_holiday(cluster, np.random.default_rng(0))
    assert changed.holiday_country == "DE"
    days = pd.DatetimeIndex(changed.timestamps())
    ascension = days.normalize() == pd.Timestamp("2026-05-14", tz="UTC")
    labour_day = days.normalize() == pd.Timestamp("2026-05-01", tz="UTC")
    assert ascension.sum() == labour_day.sum() == 48
    assert np.flatnonzero(ascension)[0] >= cut_off_slot(changed)
    assert np.flatnonzero(labour_day)[-1] < cut_off_slot(changed) - 7 * 48
    ratio = changed.usage[:, CPU] / cluster.usage[:, CPU]
    np.testing.assert_allclose(ratio[:, ~(ascension | labour_day)], 1.0)
    assert {round(float(x), 2) for x in ratio[:, ascension].ravel()} == {0.3, 1.7}


def test_each_half_of_the_services_has_the_holidays_of_its_country(cluster: Cluster) -> None:
    changed = two_countries(cluster, np.random.default_rng(0))
    days = pd.DatetimeIndex(changed.timestamps()).normalize()
    ratio = changed.usage[:, CPU] / cluster.usage[:, CPU]
    changes = [
        (np.nanmax(np.abs(ratio[:, days == pd.Timestamp(day, tz="UTC")] - 1), axis=1) > 0.1)
        for day in ("2026-05-14", "2026-05-01", "2026-05-04")
    ]
    ascension, labour_day, bank_holiday = changes
    assert (ascension == labour_day).all()
    assert (ascension ^ bank_holiday).all()
    assert 0.2 < ascension.mean() < 0.8


def test_a_trend_grows_by_five_percent_a_day_in_some_services(cluster: Cluster) -> None:
    changed = daily_trend(cluster, np.random.default_rng(0))
    last_day, day_before = slice(-48, None), slice(-96, -48)
    factor = changed.usage[:, CPU] / cluster.usage[:, CPU]
    per_day = factor[:, last_day].mean(axis=1) / factor[:, day_before].mean(axis=1)
    kinds = {round(float(x), 3) for x in per_day}
    assert kinds == {round(1 / 1.05, 3), 1.0, 1.05}


@pytest.mark.parametrize("known_factor", [True, False])
def test_a_campaign_is_in_the_calendar_and_in_the_load(cluster: Cluster, tmp_path: Path, *, known_factor: bool) -> None:
    changed = campaign(cluster, np.random.default_rng(0), known_factor=known_factor)
    write_history(changed, tmp_path)
    events = read_events(tmp_path / "events.yaml")
    assert {event.factor for event in events} == {2.0 if known_factor else None}
    day_of_slot = np.arange(cluster.n_slots) // 48
    first = cluster.start.date()
    ratio = changed.usage[:, CPU] / cluster.usage[:, CPU]
    expected = np.ones_like(ratio)
    for event in events:
        service = [s.owner for s in cluster.services].index(event.service)
        expected[np.ix_(cluster.service_of == service, day_of_slot == (event.first_day - first).days)] = 2.0
    np.testing.assert_allclose(ratio, np.where(np.isnan(ratio), np.nan, expected))
    assert (day_of_slot * 48)[np.flatnonzero((ratio == 2.0).any(axis=0))[-1]] > cut_off_slot(cluster)


def test_releases_change_a_third_of_the_services_for_good(cluster: Cluster) -> None:
    changed = releases(cluster, np.random.default_rng(0))
    moment = cut_off_slot(cluster) - 4 * 48
    ratio = changed.usage[:, CPU] / cluster.usage[:, CPU]
    np.testing.assert_allclose(ratio[:, :moment], 1.0)
    assert {round(float(x), 3) for x in ratio[:, moment:].ravel()} == {0.5, 1.0, 1.8}
    np.testing.assert_array_equal(changed.usage[:, MEMORY], cluster.usage[:, MEMORY])


def test_a_plain_trace_keeps_its_values() -> None:
    curves = made_up_asd(10)
    plain = plain_cluster(curves, "asd", "UTC")
    np.testing.assert_array_equal(plain.usage[:, CPU], curves.values["cpu"])
    assert np.isnan(plain.usage[:, MEMORY]).all()
    assert plain.pods[0] == "asd-omi-1-m10-0"


def test_the_command_builds_a_scenario_from_a_history(cluster: Cluster, tmp_path: Path) -> None:
    write_history(cluster, tmp_path / "in")
    assert main(["scenario", "trend", "--history", str(tmp_path / "in"), "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "usage.parquet").exists()


def test_the_command_names_a_missing_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["asd", "--traces", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "asd.parquet" in capsys.readouterr().err


@needs_traces("asd.parquet", untested="the cluster built from ASD")
def test_the_evening_cluster_peaks_in_the_evening_but_for_a_third() -> None:
    built = asd_cluster(read_asd(TRACES), seed=9, node_sizes=NodeSizes.EQUAL)
    assert 1250 <= len(built.pods) <= 1350
    assert len(built.nodes) == 100
    hour = pd.DatetimeIndex(built.timestamps()).hour.to_numpy()
    by_hour = np.stack([built.usage[:, CPU][:, hour == h].mean(axis=1) for h in range(24)], axis=1)
    peak = pd.Series(by_hour.argmax(axis=1)).groupby(built.service_of).median()
    elsewhere = (~peak.between(11, 23)).mean()
    assert 0.2 < elsewhere < 0.4
    replicas = np.bincount(built.service_of)
    assert replicas.min() >= 4
    assert replicas.max() <= 24


@needs_traces("bitbrains_rnd.parquet", untested="the cluster built from Bitbrains")
@pytest.mark.long
def test_the_cluster_of_vms_has_four_resources_and_the_outage_of_its_trace() -> None:
    built = bitbrains_cluster(read_bitbrains(TRACES), seed=1, node_sizes=NodeSizes.MIXED, n_pods=150, n_nodes=12)
    assert built.time_zone == "Europe/Amsterdam"
    measured = np.isfinite(built.usage).mean(axis=(0, 2))
    assert (measured[[CPU, MEMORY, DISK, NETWORK]] > 0.9).all()
    outage = np.isnan(built.usage).all(axis=(0, 1))
    assert outage.sum() == 48
    load = np.nansum(built.node_totals()[:, :, ~outage], axis=0) / built.capacity.sum(axis=0)[:, None]
    assert (np.quantile(load[[CPU, DISK, NETWORK]], 0.99, axis=1) < 0.65).all()


def test_moved_services_only_change_their_names(cluster: Cluster, tmp_path: Path) -> None:
    moved = moved_services(cluster, np.random.default_rng(1))
    moment = cut_off_slot(cluster) - 16
    np.testing.assert_allclose(moved.node_totals(), cluster.node_totals(), rtol=1e-5)
    assert len(moved.moved) == len(moved.services) - len(cluster.services) > 0
    alive = moved.alive()
    for old, new in moved.moved:
        row = {f"{s.namespace}/{s.owner}": n for n, s in enumerate(moved.services)}
        before, after = (alive[moved.service_of == row[name]].sum(axis=0) for name in (old, new))
        was = cluster.alive()[cluster.service_of == row[new]].sum(axis=0)
        np.testing.assert_array_equal(before, np.where(np.arange(moved.n_slots) < moment, was, 0))
        np.testing.assert_array_equal(before + after, was)
    write_history(moved, tmp_path)
    history = HistoryFiles.open(tmp_path).history()
    assert history.earlier is not None
    assert len(history.earlier.service) == len(moved.moved)


def test_a_month_end_lies_in_the_test_week_and_two_before_it(cluster: Cluster) -> None:
    busy = month_ends(cluster, np.random.default_rng(1))
    plain = month_ends(cluster, np.random.default_rng(1), factor=1.0)
    with np.errstate(invalid="ignore"):
        ratio = np.nanmedian(busy.usage[:, CPU] / plain.usage[:, CPU], axis=1)
        load = busy.usage[:, CPU] / plain.usage[:, CPU]
    assert ratio == pytest.approx(1.0)
    local = busy.timestamps().tz_convert(busy.time_zone)
    days = sorted({str(day) for day in local.date[np.nanmax(load, axis=0) > 2]})
    assert days == ["2026-04-29", "2026-04-30", "2026-05-28", "2026-05-29", "2026-06-29", "2026-06-30"]
    assert str(local[cut_off_slot(busy)].date()) < "2026-06-29"
    assert np.nanmax(load) == pytest.approx(2.5, rel=1e-3)
    is_busy = np.nanmax(load, axis=1) > 2
    billing = {int(s) for s in busy.service_of[is_busy]}
    assert len(billing) == round(len(busy.services) / 4)


def test_repeated_days_are_those_of_a_weekday_before_the_test_week(cluster: Cluster) -> None:
    longer = month_ends(cluster, np.random.default_rng(1), factor=1.0)
    n_days, added = cluster.n_slots // 48, (longer.n_slots - cluster.n_slots) // 48
    assert added == 8 * 7
    np.testing.assert_array_equal(longer.usage[:, :, added * 48 :], cluster.usage)
    throughout = (cluster.first == 0) & (cluster.end == cluster.n_slots)
    assert (longer.first[throughout] == 0).all()
    was = cluster.usage[throughout, CPU].reshape(-1, n_days, 48)
    for day, repeated in enumerate(np.moveaxis(longer.usage[throughout, CPU].reshape(-1, added + n_days, 48), 1, 0)):
        same = [known for known in range(n_days) if np.array_equal(was[:, known], repeated)]
        assert len(same) == 1
        assert (day - added - same[0]) % 7 == 0
        assert day >= added or same[0] < n_days - 7
    local, before = (c.timestamps().tz_convert(c.time_zone) for c in (longer, cluster))
    assert local[-1].weekday() == before[-1].weekday()
