"""Training leaves excluded services out of the history and says which."""

from __future__ import annotations

import numpy as np
import pytest

from base.errors import InputError
from base.excluded import ExcludedOptions
from forecast_scheduler.commands.train_night import _without_excluded
from tests.scorer.replay.small_cluster import small_cluster


def test_excluded_services_are_not_learned_from_and_named() -> None:
    history = small_cluster()[0]
    first, *others = history.services
    known, said = _without_excluded(history, ExcludedOptions(services=(f"{first.namespace}/{first.name}",)))
    assert known.services == tuple(others)
    assert said == (f"1 service is excluded and not learned from: {first}",)
    assert (known.node_usage <= history.node_usage + 1e-6)[np.isfinite(history.node_usage)].all()
    assert _without_excluded(history, ExcludedOptions()) == (history, ())


def test_that_all_services_are_excluded_is_a_mistake_with_a_way_out() -> None:
    with pytest.raises(InputError, match=r"excluded\.namespaces .* leave no service to learn from"):
        _without_excluded(small_cluster()[0], ExcludedOptions(namespaces=("*",)))
