"""A node that was rebuilt smaller is not expected to carry what the larger one had besides its pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.fit import fit
from forecast.resources import CPU
from tests.synthetic import synthetic_history


def test_the_base_load_is_learned_since_a_node_was_rebuilt() -> None:
    history = synthetic_history(n_days=14)
    usage, daily = history.node_usage.copy(), np.repeat(history.capacity[:, :, None], history.n_days, axis=2)
    plain = fit(history).node_base[0, CPU]
    usage[0, CPU, :9] += 20.0
    daily[0, CPU, :9] *= 4
    rebuilt = fit(replace(history, node_usage=usage, daily_capacity=daily)).node_base[0, CPU]
    assert rebuilt == pytest.approx(plain, abs=0.2 * float(plain.mean()) + 0.1)
