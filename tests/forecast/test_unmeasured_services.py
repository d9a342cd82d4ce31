"""Services with pods of which no series is measured: from their nodes, or their requests, and never at nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY
from tests.forecast.six_nodes import MAIL, MAIL_POD, history_of

POOL = [0, 0, 0, 0, 3, 3]


def mail_of(model: PeakModel) -> np.ndarray:
    usage: np.ndarray = model.usage_dated[1, CPU]
    return usage


def dark(history: History, nodes: slice) -> History:
    """Nodes whose runtime names no container: of their pods nothing is measured."""
    pods = history.node_pod_usage.copy()
    pods[nodes] = np.nan
    return replace(history, node_pod_usage=pods)


@pytest.mark.parametrize("pool_shows_web", [True, False])
def test_two_nodes_of_six_say_what_their_pods_use(pool_shows_web: bool) -> None:
    history = history_of(MAIL, POOL)
    model = fit(history if pool_shows_web else dark(history, np.s_[4:]))
    assert mail_of(model).mean() == pytest.approx(MAIL_POD.mean(), rel=0.05)
    assert mail_of(model).max() == pytest.approx(MAIL_POD.max(), rel=0.1)
    assert not model.measured(CPU)[1] and model.measured(CPU)[0], "`requests` recommends nothing by it"


def without_node_usage(history: History) -> History:
    return replace(history, node_usage=np.full_like(history.node_usage, np.nan))


@pytest.mark.parametrize(("request_cores", "times_web"), [(0.4, 2), (np.nan, 1)])
def test_where_nodes_say_nothing_requests_do_and_else_other_pods(request_cores: float, times_web: float) -> None:
    model = fit(without_node_usage(history_of(MAIL, POOL, request_cores=request_cores)))
    assert mail_of(model).mean() == pytest.approx(times_web * model.usage_dated[0, CPU].mean(), rel=0.1)


def test_nodes_that_show_no_more_than_others_do_not_make_it_zero() -> None:
    history = history_of(MAIL, POOL)
    of_mail = np.zeros_like(history.node_usage)
    of_mail[:, CPU] = np.array(POOL)[:, None, None] * MAIL_POD
    assert mail_of(fit(replace(history, node_usage=history.node_usage - of_mail))).min() > 0.01


def test_memory_that_was_never_measured_is_not_zero_either() -> None:
    history = history_of(MAIL, POOL)
    usage = history.usage_per_pod.copy()
    usage[0, MEMORY] = 3e8
    model = fit(replace(history, usage_per_pod=usage))
    assert model.usage_dated[1, MEMORY].mean() == pytest.approx(3e8, rel=0.1)
