"""The simulated cluster against a slow one, the published points by hand, and the readers on a tiny trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import gpu_packing
from benchmarks.gpu_packing_cluster import Cluster, allocation_at
from benchmarks.gpu_packing_policies import PUBLISHED, CostOf
from benchmarks.gpu_packing_trace import TUNING, arrivals, cards_full_at, find_traces, known_mix, read_trace
from forecast.arrays import Ints
from scheduler.profiles.gpu.fragmentation.nodes import fits
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, mix_of
from tests.scheduler.profiles.gpu.fragmentation import cases

QUARTER = PodShape(2000, 1024, 1, 250)
WHOLE_ONE = PodShape(4000, 1024, 1, 1000)
PAIR = PodShape(4000, 1024, 2, 1000)
NO_CARD = PodShape(4000, 1024, 0, 0)
NO_KINDS: Ints = np.zeros((1, 10), dtype=np.int64)


def _points(policy: str, shape: PodShape, cpu: int, cards: list[int], kinds: Ints = NO_KINDS) -> tuple[float, int]:
    cost_of = PUBLISHED[policy](mix_of([WHOLE_ONE, PAIR]), cases.MODELS, np.random.default_rng(1))
    cost, device = cost_of(shape, cases.node_states([(cpu, 4096, 0, cards)]), kinds)
    return -cost[0], device[0]


@pytest.mark.parametrize(
    ("policy", "shape", "cpu", "cards", "points", "device"),
    [
        ("DotProd", QUARTER, 64_000, [1000, 500], 99, 1),  # 100 * (1 - (0.5 * 0.015625 + 0.1875 * 0.03125) / 2)
        ("BestFit", QUARTER, 64_000, [1000, 500], 67, 1),  # 100 * (1 - 62 / 128 / 2 - 1.25 / 8 / 2)
        ("BestFit", NO_CARD, 64_000, [1000, 500], 67, -1),  # 100 * (1 - 60 / 128 / 2 - 1.5 / 8 / 2)
        ("GpuPacking", QUARTER, 64_000, [1000, 500], 95, 1),  # on a card in use, half of it left
        ("GpuPacking", QUARTER, 64_000, [1000, 200], 49, 0),  # on an idle card of a node in use
        ("GpuPacking", PAIR, 64_000, [1000, 1000], 31, -1),  # on an idle node
        ("GpuPacking", NO_CARD, 64_000, [1000, 1000], 0, -1),
        ("GpuClustering", QUARTER, 64_000, [1000, 1000], 25 + 18, 0),  # idle: 25 * 6000 / 8000 = 18
    ],
)
def test_published_points(policy: str, shape: PodShape, cpu: int, cards: list[int], points: int, device: int) -> None:
    assert _points(policy, shape, cpu, cards) == (points, device)


def test_clustering_prefers_its_own_kind() -> None:
    shared, mixed, others = (np.zeros((1, 10), dtype=np.int64) for _ in range(3))
    shared[0, 1], mixed[0, 1], mixed[0, 2], others[0, 2] = 1, 1, 1, 1
    found = [_points("GpuClustering", QUARTER, 64_000, [1000, 500], kinds)[0] for kinds in (shared, mixed, others)]
    assert found == [75 + 20, 50 + 20, 20]


def test_fgd_points_of_a_growth() -> None:
    # What a quarter leaves of its card nobody uses: F grows by 750, and for the half that wants two cards by 1750.
    points, device = _points("FGD", QUARTER, 64_000, [1000, 1000])
    assert (points, device) == (int(100 / (1 + np.exp((0.5 * 750 + 0.5 * 1750) / 1000))), 0)


def _random_pods(rng: np.random.Generator, n_pods: int) -> list[PodShape]:
    shapes = [QUARTER, WHOLE_ONE, PAIR, NO_CARD, PodShape(1000, 512, 1, 700, frozenset({"T4"}))]
    return [shapes[at] for at in rng.integers(len(shapes), size=n_pods).tolist()]


@pytest.mark.parametrize("policy", sorted(PUBLISHED.keys() - {"Random"}))
def test_kept_costs_place_as_costs_computed_anew(policy: str) -> None:
    rng = np.random.default_rng(3)
    pods = _random_pods(rng, 60)
    nodes = cases.node_states([(16_000, 64 * 1024, at % 3, [1000] * (1 + at % 4)) for at in range(8)])
    cost_of: CostOf = PUBLISHED[policy](mix_of(pods), cases.MODELS, rng)
    kept, anew = (Cluster(nodes, cases.MODELS, cost_of, None) for _ in range(2))
    for pod in pods:
        anew.decide_by(cost_of)  # forgets all costs
        assert kept.place(pod) == anew.place(pod)
        assert (kept.nodes.free_milli == anew.nodes.free_milli).all()
        assert (kept.nodes.cpu_free == anew.nodes.cpu_free).all()


def test_a_pod_is_refused_only_if_no_node_has_room() -> None:
    rng = np.random.default_rng(4)
    nodes = cases.node_states([(8_000, 16 * 1024, at % 3, [1000] * 2) for at in range(4)])
    cluster = Cluster(nodes, cases.MODELS, PUBLISHED["Random"](mix_of([QUARTER]), cases.MODELS, rng), rng)
    refused = 0
    for pod in _random_pods(rng, 40):
        had_room = bool(fits(pod, cluster.nodes, cases.MODELS).any())
        assert cluster.place(pod) == had_room
        refused += not had_room
    assert refused
    assert cluster.nodes.cpu_free.min() >= 0
    assert cluster.nodes.free_milli.min() >= 0


def test_allocation_is_the_mean_of_what_rounds_to_a_percent() -> None:
    arrived, allocated = np.array([98.0, 99.6, 100.4, 101.0]), np.array([90.0, 91.0, 93.0, 94.0])
    assert allocation_at([97, 100], arrived, allocated) == {97: 90.0, 100: 92.0}


def _write_trace(directory: Path) -> None:
    (directory / "openb_node_list_gpu_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn-1,64000,262144,2,P100\nn-0,96000,393216,4,T4\n"
    )
    rows = ["p-0,4000,1024,1,1000,", "p-1,2000,1024,1,250,T4|P100", "p-2,8000,1024,0,0,", "p-3,8000,1024,2,1000,"]
    (directory / "openb_pod_list_default.csv").write_text(
        "\n".join(["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec", *rows]) + "\n"
    )
    published = ["default,FGD,100,95.2,0.1,10", "default,BestFit,100,92.8,0.1,10"]
    (directory / "fgd_expected_allocation.csv").write_text(
        "\n".join(["variant,policy,arrived_load_pct,gpu_alloc_pct_mean,gpu_alloc_pct_std,seeds", *published]) + "\n"
    )


def test_reading_a_trace(tmp_path: Path) -> None:
    (tmp_path / "openb").mkdir()
    _write_trace(tmp_path / "openb")
    trace = read_trace(find_traces(tmp_path))
    assert trace.models == ("P100", "T4")
    assert trace.nodes.free_milli.tolist() == [[1000] * 4, [1000, 1000, -1, -1]]  # by name
    assert trace.nodes.model.tolist() == [1, 0]
    assert trace.pods["default"][1] == PodShape(2000, 1024, 1, 250, frozenset({"T4", "P100"}))
    assert trace.published["default", "FGD", 100] == 95.2
    assert trace.variants() == ["default"]


def test_missing_traces_are_explained(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--traces DIR: the directory with openb/"):
        find_traces(tmp_path)
    with pytest.raises(SystemExit, match="--traces was not given"):
        find_traces(None)


def test_pods_arrive_until_they_have_asked_for_so_much() -> None:
    pods = [QUARTER] * 5 + [PAIR] * 2 + [NO_CARD]
    few = arrivals(pods, 10_000, np.random.default_rng(1))
    assert TUNING * 10_000 - 2000 < sum(pod.asked_milli for pod in few) <= TUNING * 10_000 + 1000
    assert sorted(few[: len(pods)], key=PodShape.order) == sorted(pods, key=PodShape.order)  # the list comes first
    many = arrivals(pods, 1_000, np.random.default_rng(1))
    assert sum(pod.asked_milli for pod in many) <= TUNING * 1_000


def test_the_mix_that_the_simulator_knows_has_no_memory() -> None:
    mix = known_mix([QUARTER] * 3 + [PodShape(2000, 9999, 1, 250)] + [PAIR] * 4)
    assert mix.shapes == (PodShape(4000, 0, 2, 1000), PodShape(2000, 0, 1, 250))
    assert mix.weight.tolist() == [0.5, 0.5]


def test_cards_are_full_before_all_of_them_is_given_out() -> None:
    assert cards_full_at([PAIR] * 3) == pytest.approx(100)
    assert cards_full_at([PodShape(1000, 0, 1, 800)] * 3 + [NO_CARD]) == pytest.approx(80)
    assert cards_full_at([PodShape(1000, 0, 1, 800), QUARTER]) == pytest.approx(100 * 1.05 / 1.25)


def test_the_table_names_every_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_trace(tmp_path)
    figures = tmp_path / "figures.json"
    assert gpu_packing.main(["--traces", str(tmp_path), "--short", "--seeds", "1", "--json", str(figures)]) == 0
    printed = capsys.readouterr().out
    for policy in (*PUBLISHED, *gpu_packing.OURS):
        assert policy in printed
    assert "92.80" in printed
    assert '"policy": "live"' in figures.read_text()
