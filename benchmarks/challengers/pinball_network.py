"""A small network of our own features, trained on the cluster itself: the log ratio of a peak to a mean of rules.

One hidden layer, both quantiles as outputs, their pinball losses added up, Adam (Kingma & Ba, arXiv 1412.6980).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats
from benchmarks.challengers.known_series import QUANTILES, KnownSeries
from forecast.calendar import Days
from forecast.peak_experts import expert_forecasts, known_days
from forecast.peak_statistics import DailyStatistics, daily_statistics
from forecast.peak_trees import describe, relative_features

_FEWEST_DAYS_BEFORE, _TRAINING_DAYS = 14, 60
_MAX_ROWS = 24_000
_HIDDEN, _BATCH, _EPOCHS, _MEMBERS = 48, 256, 12, 2
_STEP, _DECAY = 2e-3, 1e-4
_LARGEST_INPUT = 5.0


def pinball_network(known: KnownSeries) -> Floats:
    """Next day's peak quantiles: (n_series, 2)."""
    statistics = daily_statistics(known.usage, known.resource, known.days)
    n_days = len(known.days)
    rng = np.random.default_rng(0)
    targets = range(max(_FEWEST_DAYS_BEFORE, n_days - _TRAINING_DAYS), n_days)
    learnt = [_examples(statistics, day, known.days.take(slice(day, day + 1))) for day in targets]
    features = np.concatenate([one.features for one in learnt])
    base = np.concatenate([one.base for one in learnt])
    unit = np.concatenate([one.unit for one in learnt])
    actual = np.concatenate([statistics.peak[:, day] for day in targets])
    usable = np.flatnonzero(np.isfinite(actual) & (np.concatenate([one.scale for one in learnt]) > 0))
    usable = rng.permutation(usable)[:_MAX_ROWS]
    centre, spread = np.nanmean(features[usable], axis=0), np.nanstd(features[usable], axis=0) + 1e-6

    def standard(values: Floats) -> Floats:
        scaled = np.clip((values - centre) / spread, -_LARGEST_INPUT, _LARGEST_INPUT)
        return np.asarray(np.nan_to_num(scaled))  # what is not known counts as usual

    ratio = np.log(np.maximum(actual[usable, None] / base[usable], 0.01))
    # d(y / unit) = (base / unit) d(ratio): with this weight the network minimises the loss of y / unit.
    weight = np.clip(base[usable] / unit[usable, None], 0.005, 3.0)
    now = _examples(statistics, n_days, known.target)
    answers = []
    for member in range(_MEMBERS):
        network = _Network.random(features.shape[1], np.random.default_rng(member))
        network.learn(standard(features[usable]), ratio, weight, np.random.default_rng(member))
        answers.append(network.answer(standard(now.features)))
    moved = np.clip(np.mean(answers, axis=0), -3.0, 3.0)
    forecasts = np.where(now.scale[:, None] > 0, now.base * np.exp(moved), 0.0)
    return np.asarray(np.maximum.accumulate(forecasts, axis=1))


@dataclass(frozen=True, slots=True)
class _Examples:
    """All series on one day: features (n_series, n_features), base (n_series, 2), unit and scale (n_series,)."""

    features: Floats
    base: Floats
    unit: Floats
    scale: Floats


def _examples(statistics: DailyStatistics, origin: int, target: Days) -> _Examples:
    known = known_days(statistics, np.arange(len(statistics.peak)), origin)
    experts = expert_forecasts(statistics, known, target, 1)
    base = np.maximum(experts.mean(axis=1), 1e-3 * known.unit[:, None])
    spread = 0.03 + np.log(base[:, 1] / base[:, 0]).clip(0.0)
    relative = relative_features(experts, base[:, 0], known.unit, spread)
    features = np.concatenate([describe(statistics, known, experts, target, 1), relative], axis=1)
    return _Examples(features, base, known.unit, known.scale)


class _Network:
    """inputs -> tanh -> one output per quantile."""

    def __init__(self, parameters: list[Floats]) -> None:
        self._parameters = parameters

    @classmethod
    def random(cls, n_features: int, rng: np.random.Generator) -> _Network:
        """Small random weights; outputs begin at 0, which is the base itself."""
        hidden = rng.normal(0.0, n_features**-0.5, (n_features, _HIDDEN))
        return cls([hidden, np.zeros(_HIDDEN), np.zeros((_HIDDEN, len(QUANTILES))), np.zeros(len(QUANTILES))])

    def answer(self, inputs: Floats) -> Floats:
        """(n_rows, n_quantiles)"""
        hidden, hidden_bias, out, out_bias = self._parameters
        return np.asarray(np.tanh(inputs @ hidden + hidden_bias) @ out + out_bias)

    def learn(self, inputs: Floats, target: Floats, weight: Floats, rng: np.random.Generator) -> None:
        """Minimise the weighted pinball losses. target, weight: (n_rows, n_quantiles)."""
        first = [np.zeros_like(one) for one in self._parameters]
        second = [np.zeros_like(one) for one in self._parameters]
        steps = 0
        n_steps = _EPOCHS * -(-len(inputs) // _BATCH)
        for _ in range(_EPOCHS):
            order = rng.permutation(len(inputs))
            for start in range(0, len(order), _BATCH):
                rows = order[start : start + _BATCH]
                steps += 1
                rate = _STEP * (1 - (steps - 1) / n_steps)
                for index, slope in enumerate(self._slopes(inputs[rows], target[rows], weight[rows])):
                    first[index] += 0.1 * (slope - first[index])
                    second[index] += 0.001 * (slope**2 - second[index])
                    mean, square = first[index] / (1 - 0.9**steps), second[index] / (1 - 0.999**steps)
                    decay = _DECAY * self._parameters[index]
                    self._parameters[index] -= rate * (mean / (np.sqrt(square) + 1e-8) + decay)

    def _slopes(self, inputs: Floats, target: Floats, weight: Floats) -> list[Floats]:
        """Slopes of the mean loss, in the order of the parameters."""
        hidden, hidden_bias, out, out_bias = self._parameters
        active = np.tanh(inputs @ hidden + hidden_bias)
        below = target > active @ out + out_bias
        slope = weight * np.where(below, -np.array(QUANTILES), 1 - np.array(QUANTILES)) / len(inputs)
        inner = slope @ out.T * (1 - active**2)
        return [inputs.T @ inner, inner.sum(axis=0), active.T @ slope, slope.sum(axis=0)]
