"""Three nights on the bundled sample: published, issued, judged and reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from forecast.model_artefact import artefact_of, model_of
from forecast.object_store import open_store
from forecast.published_models import Registry
from forecast.resources import CPU
from trainer.gate.gate_run import apply_gate, run_gate
from trainer.gate.gate_verdict import GateVerdict
from trainer.history.files import read_history
from trainer.issued_forecasts import load_issued, store_issued
from trainer.lease import hold_lease
from trainer.run_report.html import run_page
from trainer.run_report.report import run_report

SAMPLE = Path(__file__).parents[3] / "data" / "sample"
NOW = datetime(2026, 2, 13, 2, tzinfo=UTC)


@pytest.mark.long
def test_three_nights_on_the_sample(tmp_path: Path) -> None:
    history = read_history(SAMPLE)
    registry, store = Registry(str(tmp_path)), open_store(str(tmp_path))

    def good(known: History, previous: PeakModel | None) -> PeakModel:
        return fit(known, previous=previous)

    def bad(known: History, previous: PeakModel | None) -> PeakModel:
        model = fit(known, previous=previous)
        usage = model.usage_dated.copy()
        usage[:, CPU] *= np.float32(0.7)
        return replace(model, usage_dated=usage)

    nights = []
    for back, recipe in ((2, good), (1, bad), (0, good)):
        known = history.before(history.n_days - back)
        with hold_lease(str(tmp_path)) as lease:
            before = model_of(registry.load(), NOW) if registry.latest() else None
            gate = run_gate(known, before, recipe)
            model = apply_gate(recipe(known, before), before, gate)
            lease.check()
            version = registry.publish(artefact_of(model, NOW))
            store_issued(store, model, version)
        issued = load_issued(store, known.days[-28:], after_the_fact=True)
        nights.append(
            run_report(
                version=version, created=NOW, model=model, before=before, history=known, issued=issued, gate=gate
            )
        )
    first, second, third = nights
    assert set(first.gate.with_verdict(GateVerdict.NOTHING_TO_COMPARE)) == {"cpu", "memory", "disk", "network", "log"}
    assert second.gate.with_verdict(GateVerdict.HELD_BACK) == ("cpu",)
    assert len(third.gate.with_verdict(GateVerdict.PASSED)) == 5, third.gate.lines()
    # The bad recipe never reached a reader: what was issued that night for CPU is as good as the night before.
    losses = [night.scores["cpu"].loss50 + night.scores["cpu"].loss95 for night in third.issued]
    assert [night.lead_days for night in third.issued] == [1, 1] and max(losses) < 0.1
    assert all(0.85 < score.coverage95 <= 1 for night in third.issued for score in night.scores.values())
    assert len(registry.versions()) == 3  # neither lease nor issued forecasts disturb the registry
    page = run_page(third)
    assert version in page and "shop/Deployment/cart" in page
