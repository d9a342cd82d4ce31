"""One cause raises one alert, and none what is not wrong: every cause is played with all that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from testing.alerting.causes import BEGIN, CAUSES, END, Cause
from testing.alerting.installation import REPLICAS, target_labels
from testing.alerting.playing import play
from tests.dashboards.promtool_tests import Series, run_rule_tests

ALERTS: Final = Path(__file__).parents[2] / "dashboards" / "prometheus" / "alerts.yaml"
_EVER: Final = 'group by (cluster, alertname, severity) (last_over_time(ALERTS{alertstate="firing"}[2h]))'


def _series(cause: Cause) -> Iterator[Series]:
    """One sample a minute of every target; from time 0 on, which is minute 0."""
    for part, replicas in REPLICAS.items():
        for replica in range(replicas):
            up = " ".join(str(int(cause.answers(part, replica, minute))) for minute in range(END + 1))
            yield Series("up", {"cluster": cause.name, **target_labels(part, replica)}, up)
    for figure, steps in [*cause.pieces(), *((one, []) for one in cause.added)]:
        ends = [*(round(start + 0.49) for start, _ in steps), END + 1]
        values, begin = [], BEGIN if figure in cause.added else 0
        for end, one in zip(ends, [figure, *(piece for _, piece in steps)], strict=True):
            if end > begin:
                growth = 0.0 if one.is_moment else one.a_minute
                values.append(f"{one.at(begin, 60 * begin)!r}+{growth!r}x{end - begin - 1}")
            begin = end
        if not cause.answers(figure.part, figure.replica, 0):
            continue
        if not cause.answers(figure.part, figure.replica, END):
            values = [f"{figure.at(0, 0)!r}+0x{BEGIN - 1}", "stale"]
        before = [f"_x{BEGIN}"] if figure in cause.added else []
        labels = {"cluster": cause.name, **target_labels(figure.part, figure.replica), **dict(figure.labels)}
        yield Series(figure.name, labels, " ".join([*before, *values]))


def _check() -> dict[str, Any]:
    raised = [
        {"labels": f'{{alertname="{one.alert}",cluster="{one.name}",severity="{one.severity}"}}', "value": 1}
        for one in CAUSES
        if one.alert
    ]
    return {
        "interval": "1m",
        "input_series": [one.written() for cause in CAUSES for one in _series(cause)],
        "promql_expr_test": [{"expr": _EVER, "eval_time": f"{END}m", "exp_samples": raised}],
    }


def test_one_cause_raises_one_alert(tmp_path: Path) -> None:
    complaints = run_rule_tests(tmp_path, [ALERTS], [_check()], every="2m")  # every minute takes twice as long
    assert not complaints, complaints


@pytest.mark.long
def test_one_cause_is_one_notification_of_a_real_alertmanager(tmp_path: Path) -> None:
    """Without inhibit_rules, which not everybody has."""
    raised = {
        one.cause.name: (one.fired, one.raised, one.notifications)
        for one in play(CAUSES, ALERTS, tmp_path, factor=20.0)
    }
    assert raised == {one.name: (((one.alert, one.severity),), 1, 1) if one.alert else ((), 0, 0) for one in CAUSES}
