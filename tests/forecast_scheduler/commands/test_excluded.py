"""Training leaves excluded services out of the history and says which."""

from __future__ import annotations

import numpy as np

from base.excluded import ExcludedOptions
from forecast_scheduler.commands.train_night import _without_excluded
from tests.scorer.replay.small_cluster import small_cluster


def test_excluded_services_are_not_learned_from_and_named() -> None:
    history = small_cluster()[0]
    first, *others = history.services
    known, said = _without_excluded(history, ExcludedOptions(services=(f"{first.namespace}/{first.name}",)))
    assert known.services == tuple(others)
    assert said == (f"1 services are excluded and not learned from: {first}",)
    assert (known.node_usage <= history.node_usage + 1e-6)[np.isfinite(history.node_usage)].all()
    assert _without_excluded(history, ExcludedOptions()) == (history, ())
