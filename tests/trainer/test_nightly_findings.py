"""Nothing wrong is published silently: a night with a model that does not reproduce what was, from fit to manifest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from base.errors import InputError
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import model_of
from forecast.model_findings import ModelFinding, findings_of
from forecast.published_models import Registry
from forecast.resources import CPU, RESOURCES
from tests.trainer.gate.test_reproduction import history, model, with_cpu
from trainer import nightly
from trainer.audit.finding import Finding, FindingKind
from trainer.gate.gate_verdict import GateVerdict
from trainer.nightly import Night, train_and_publish

NOW = datetime.combine(history().days[-1] + timedelta(days=1), datetime.min.time(), UTC)
CLOCK = Finding(FindingKind.SHIFTED_CLOCK, 4, 4, np.ones(len(RESOURCES)), "clocks moved", "set the time zone")


def night(registry: Registry, found: PeakModel, monkeypatch: pytest.MonkeyPatch, *, force: bool = False) -> Night:
    def fit(known: History, *args: object, **options: object) -> PeakModel:
        return found

    monkeypatch.setattr(nightly, "fit", fit)
    return train_and_publish(history(), registry, now=NOW, live=True, force=force, findings=[CLOCK.short()])


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(str(tmp_path))


def test_a_wrong_resource_is_left_out_of_a_first_model_and_said(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = night(registry, with_cpu(4.0), monkeypatch)
    assert done.published and done.gate.results["cpu"].verdict is GateVerdict.LEFT_OUT
    loaded = model_of(registry.load(), NOW)
    assert np.isnan(loaded.usage_dated[:, CPU]).all() and np.isfinite(loaded.usage_dated[:, CPU + 1]).all()
    assert [one.finding for one in findings_of(loaded.info)] == ["shifted clock", "not reproduced"]
    assert findings_of(loaded.info) == done.findings and "service-3" in done.findings[1].what
    again = night(registry, with_cpu(4.0), monkeypatch)
    assert not again.published and again.findings == done.findings, "a second run says the same"


def test_a_wrong_resource_keeps_the_model_in_use(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    assert night(registry, model(), monkeypatch).findings == (CLOCK.short(),)
    later = replace(with_cpu(4.0), info={**model().info, "other": 1})
    monkeypatch.setattr(nightly, "_is_done", lambda *args: False)
    done = night(registry, later, monkeypatch)
    assert done.gate.results["cpu"].verdict is GateVerdict.HELD_BACK
    np.testing.assert_allclose(
        model_of(registry.load(), NOW).usage_dated[:, CPU], model().usage_dated[:, CPU], rtol=1e-6
    )


def test_force_publishes_with_the_finding(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    done = night(registry, with_cpu(4.0), monkeypatch, force=True)
    assert done.gate.results["cpu"].verdict is GateVerdict.FORCED and done.findings[-1].finding == "not reproduced"
    assert np.isfinite(model_of(registry.load(), NOW).usage_dated[:, CPU]).all()


def test_a_night_of_which_nothing_reproduces_publishes_nothing(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="nothing is published"):
        night(registry, replace(model(), usage_dated=model().usage_dated * 4), monkeypatch)
    assert registry.latest() is None


def test_findings_of_another_form_are_left_out() -> None:
    good = ModelFinding("a", "b", "c")
    assert findings_of({"findings": [good.to_json(), {"finding": "a"}, 3, {**good.to_json(), "what": 1}]}) == (good,)
    assert findings_of({}) == findings_of({"findings": "text"}) == ()
