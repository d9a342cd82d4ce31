"""Runs of CronJob pods from a real Prometheus through the trainer's own history to what is learned of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pytest

from forecast.calendar import Calendar
from forecast.history import History
from forecast.run_forecast import RunForecast, forecast_runs
from forecast.service_key import ServiceKey
from testing.servers.openmetrics import write_blocks
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import DAY, HOUR, MINUTE, Scrapes
from trainer.history.files import read_history
from trainer.own_history.store import OwnHistory
from trainer.prometheus.connection import Connection
from trainer.prometheus.options import SourceOptions
from trainer.prometheus.source import PrometheusSource

N_DAYS = 5
ZONE = Calendar("Europe/Berlin")  # an hour before UTC: local days begin at 23:00 UTC
SECONDS_PER_DAY = 86_400
_LATE = 20
"""Seconds after which the pod of a CronJob runs once it is due."""


def cron_job(scrapes: Scrapes, name: str, at: float, seconds: float, cpu_cores: float, *, owner_known: bool) -> None:
    """A pod a day, due at a second of the UTC day. Finished pods stay listed for four hours, as Kubernetes has it."""
    midnight = int(datetime.combine(DAY, time(), UTC).timestamp())
    for day in range(N_DAYS):
        due = day * SECONDS_PER_DAY + at
        job = f"{name}-{int(midnight + due) // 60}"
        begin, end = due + _LATE, due + _LATE + seconds
        scrapes.pod("batch", f"{job}-abcde", "n1", begin, end, kind="Job", owner=job, cpu=cpu_cores)
        scrapes.pod("batch", f"{job}-abcde", "n1", end, end + 4 * HOUR, kind="Job", owner=job, phase="Succeeded")
        if owner_known:
            owner = {"owner_kind": "CronJob", "owner_name": name, "owner_is_controller": "true"}
            scrapes.gauge("kube_job_owner", 1, begin, end + 4 * HOUR, namespace="batch", job_name=job, **owner)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    scrapes, end = Scrapes(), N_DAYS * SECONDS_PER_DAY
    scrapes.pod("shop", "cart-0", "n1", 0, end, kind="StatefulSet", owner="cart", cpu=0.5)
    scrapes.counter("node_cpu_seconds_total", 4.0, 0, end, node="n1", cpu="0", mode="user", instance="n1:9100")
    cron_job(scrapes, "short", 4 * HOUR, 7 * MINUTE, 1.0, owner_known=True)
    cron_job(scrapes, "nightly", 2 * HOUR, 3 * HOUR, 2.0, owner_known=True)
    cron_job(scrapes, "late", 22 * HOUR, 3 * HOUR, 1.5, owner_known=False)
    blocks = tmp_path_factory.mktemp("blocks")
    write_blocks(scrapes.series, blocks)
    own = OwnHistory(str(tmp_path_factory.mktemp("own")))
    own.begin(ZONE, 300)
    with PrometheusServer(blocks) as server:
        source = PrometheusSource(Connection(server.url), SourceOptions())
        for index in range(N_DAYS):
            day: date = DAY + timedelta(days=index)
            until = datetime.combine(day, time(), UTC) + timedelta(days=1, hours=3)
            own.append(source.read_day(day, until), read_until=until)
    with own.local() as directory:
        return read_history(directory)


@pytest.fixture(scope="module")
def runs(history: History) -> RunForecast:
    return forecast_runs(history)


def row(history: History, name: str) -> int:
    return history.services.index(ServiceKey("batch", "CronJob", name))


@pytest.mark.parametrize(
    ("name", "minutes", "whole_runs", "start_slot", "cpu_cores"),
    # Evaluations lie 5 minutes apart: a run of 7 minutes that begins at 04:00:20 was there at 04:05 and not at 04:10.
    # The last run over midnight is cut off by the end of the data.
    [("short", 5, 5, 10, 1.0), ("nightly", 180, 5, 6, 2.0), ("late", 180, 4, 46, 1.5)],
)
def test_length_start_and_load_of_runs_are_learned(
    history: History,
    runs: RunForecast,
    name: str,
    minutes: float,
    whole_runs: int,
    start_slot: int,
    cpu_cores: float,
) -> None:
    service = row(history, name)
    assert runs.seconds[service, 0] == pytest.approx(minutes * MINUTE, abs=5 * MINUTE)
    assert runs.seconds[service, 0] <= runs.seconds[service, 1] <= 1.4 * (minutes + 5) * MINUTE
    assert runs.count[service] == whole_runs
    # The one step in which the short run was seen is not filled by it.
    assert runs.usage[service, 0] == pytest.approx(cpu_cores, rel=0.15 if name == "short" else 0.02)
    expected = np.zeros(48)
    expected[start_slot] = 1.0
    np.testing.assert_allclose(runs.starts[service, 0], expected, atol=1e-9)
    assert not runs.ended[service]


def test_a_finished_pod_that_is_still_listed_runs_no_more(history: History) -> None:
    nightly = history.replicas[row(history, "nightly")]
    assert nightly[1, 6:12].tolist() == [1.0] * 6  # 03:00 to 06:00 in Berlin
    assert nightly[1, :6].sum() + nightly[1, 13:].sum() == 0
