from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from base.arrays import Floats
from base.errors import InputError
from forecast.resources import CPU, LOG, RESOURCES
from scorer.scores.score_catalogue import SCORES, check_weights, combine, scores
from scorer.scores.score_columns import ClusterFigures, ScoredNodeColumns, ScoredPodColumns
from scorer.scores.score_settings import ScoreParameters


def test_scores_combine_to_their_weighted_mean_and_those_without_weight_are_not_needed() -> None:
    computed = {"a": np.array([100.0, 0.0]), "b": np.array([50.0, 100.0])}
    np.testing.assert_allclose(combine(computed, {"a": 3, "b": 1}), [87.5, 25.0])
    np.testing.assert_allclose(combine(computed, {"b": 0.2}), [50.0, 100.0])
    assert combine({"a": np.array([20.0])}, {"a": 1.0, "qos_balance": 0.0}).tolist() == [20.0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"predicted_peek": 1.0}, "did you mean predicted_peak"),
        ({"zzz": 1.0}, "known are: balance"),
        ({"balance": -1.0}, "balance has the weight -1.0"),
        ({"balance": float("nan")}, "balance has the weight nan"),
        ({"balance": float("inf")}, "balance has the weight inf"),
        ({"balance": 0.0}, "no score has a weight above 0"),
        ({}, "no score has a weight above 0"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_weights(weights, SCORES)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"request_weights": {"cpu": -1.0}}, "request_weights.cpu is -1.0"),
        ({"balance_weights": {"cpu": 0.0}}, "balance_weights: no resource has a weight above 0"),
        ({"balance_weights": {}}, "balance_weights: no resource has a weight above 0"),
        ({"usage_weights": {"gpu": 1.0}}, "resource 'gpu' is not known"),
        ({"shape": ()}, "at least one pair"),
        ({"shape": ((50, 1), (50, 2))}, "utilizations rising"),
        ({"shape": ((0, 0), (101, 10))}, "utilizations rising"),
        ({"shape": ((-1, 0), (100, 10))}, "utilizations rising"),
        ({"shape": ((0, 0), (100, 11))}, "scores within"),
        ({"shape": ((0, 0.5), (100, 10))}, "valid integer"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ScoreParameters(**parameters)


GPU = "nvidia.com/gpu"
PARAMETERS = ScoreParameters(
    request_weights={"cpu": 1, GPU: 1},
    balance_weights={"memory": 1, GPU: 3},
    usage_weights={"cpu": 1, "log": 3},
    shape=((0, 10), (100, 0)),
)
# One node. Requested with the pod: CPU 30 % (true) or 40 % (nonzero), memory 50 % (true), GPU 80 %.
NODES = ScoredNodeColumns(
    kinds=("cpu", "memory", GPU),
    allocatable=np.array([[10.0, 100.0, 10.0]]),
    requested=np.array([[2.0, 40.0, 6.0]]),
    requested_nonzero=np.array([[2.5, 45.0]]),
    capacity=np.full((1, len(RESOURCES)), 10.0),
    virtual_available=np.arange(1.0, 1.0 + len(RESOURCES))[None, :],  # of CPU 1, of log 5
    qos_pods=np.array([[1.0, 1.0, 2.0]]),
    qos_memory=np.array([[0.0, 1.0, 0.0]]),
    predicted_share=np.array([0.35]),
    exact_cost=np.array([np.nan]),
    out_of_memory=np.array([False]),
    known=np.array([True]),
)
POD = ScoredPodColumns(
    requests=np.array([1.0, 10.0, 2.0]),
    nonzero=np.array([1.5, 15.0]),
    virtual_request=np.full(len(RESOURCES), 1.0),
    qos=2,
)
CLUSTER = ClusterFigures(
    qos_pods=np.array([1.0, 1.0, 0.0]),
    qos_memory=np.array([0.0, 3.0, 1.0]),
    allocatable=np.array([40.0, 400.0]),
    stack_weight=0.75,
)


def deviation(shares: Floats, weights: Floats) -> float:
    mean = np.average(shares, weights=weights)
    return float(np.sqrt(np.average((shares - mean) ** 2, weights=weights)))


BEFORE = deviation(np.array([0.4, 0.6]), np.array([1.0, 3.0]))
AFTER = deviation(np.array([0.5, 0.8]), np.array([1.0, 3.0]))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("predicted_peak", 65.0),
        # left are CPU (1 - 1) / 10 and log (5 - 1) / 10, weights 1 and 3; a share of 1 has 10 / e points
        ("most_available", 0.95 * 10 / math.e + 0.05 * (10 / math.e + 3 * 40) / 4),
        ("balance", 100 * (1 - AFTER)),
        ("balanced_allocation", 50 + (50 + 100 * (BEFORE - AFTER)) / 2),
        # Pn = 2 / 4, Pc = 0: half of what is possible below the neutral 50
        ("qos_balance", 25.0),
        # Pn = 0, Pc = 1 / 4
        ("qos_memory", 62.5),
        # share (0.4 + 0.8) / 2 = 0.6: a quarter of 40 and three quarters of 60
        ("spread_or_stack", 55.0),
        ("least_allocated", 40.0),
        ("most_allocated", 60.0),
        # falling shape: 60 for CPU, 20 for GPUs
        ("requested_to_capacity_ratio", 40.0),
    ],
)
def test_every_score_reads_its_own_columns_and_parameters(name: str, expected: float) -> None:
    assert (0, len(RESOURCES) - 1) == (CPU, LOG)
    score = scores(PARAMETERS)[name].compute(NODES, POD, CLUSTER)
    np.testing.assert_allclose(score, [expected], rtol=1e-12)
