"""From figures to verdicts: every rule, its limit, and that nothing is held back for ever."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import date

import pytest

from forecast.backtest import BacktestScore
from trainer.gate.evidence import GateEvidence
from trainer.gate.gate_verdict import GateReport, GateResult, GateVerdict, judge

PASSED, HELD_BACK, NOTHING_TO_COMPARE = GateVerdict.PASSED, GateVerdict.HELD_BACK, GateVerdict.NOTHING_TO_COMPARE


def evidence(
    candidate: float = 0.05,
    current: float = 0.05,
    naive: float = 0.07,
    *,
    coverage: float = 0.95,
    current_coverage: float = 0.95,
    n: int = 100,
    widening: float = 1.0,
) -> GateEvidence:
    """Losses are those of both quantiles together."""

    def score(loss: float, covered: float) -> BacktestScore:
        return BacktestScore(0.75 * loss, 0.25 * loss, covered, n)

    return GateEvidence(
        score(candidate, coverage), score(current, current_coverage), score(naive, 0.9), widening, (date(2026, 5, 4),)
    )


HELD = GateResult("cpu", HELD_BACK, "held back", held_back_nights=1)
WIDENED = GateResult("cpu", GateVerdict.WIDENED, "widened", widening=2.0)


@pytest.mark.parametrize(
    ("case", "found", "verdict", "text"),
    [
        ("as good as the model in use", evidence(), PASSED, "passed on 100 series-days"),
        ("worse by less than 2 %", evidence(0.0509), PASSED, "loss 0.0509"),
        ("worse by more than 2 %", evidence(0.0512), HELD_BACK, "2.4% above the 0.0500 of the model in use"),
        ("no better than last week", evidence(naive=0.05), HELD_BACK, "not below the 0.0500 of the same day"),
        ("the same on few series", evidence(naive=0.05, n=19), PASSED, "too few to judge"),
        ("the same on as many as count", evidence(naive=0.05, n=20), HELD_BACK, "not below the 0.0500"),
        ("nodes", replace(evidence(), of_nodes=True), PASSED, "passed on 100 node-days: loss"),
        ("bad on nodes", replace(evidence(0.2), of_nodes=True), HELD_BACK, "on 100 node-days its loss"),
        ("bounds fail here only", evidence(coverage=0.7), HELD_BACK, "70.0% of the peaks lie within"),
        ("a little low on few series", evidence(coverage=0.8, n=20), PASSED, "80.0% of the peaks within"),
        ("as low on many", evidence(coverage=0.8, n=500), HELD_BACK, "at least 85% is asked"),
        (
            "bounds fail everywhere",
            evidence(0.2, 0.2, 0.1, coverage=0.6, current_coverage=0.6, widening=1.8),
            GateVerdict.WIDENED,
            "bounds 1.80 times as high: .* not below .* 60.0% of the peaks .* what is measured has changed",
        ),
        (
            "bounds fail everywhere, nearly alike",
            evidence(coverage=0.60, current_coverage=0.61, widening=2.0),
            GateVerdict.WIDENED,
            "bounds 2.00 times as high: .* fail, too, so what is measured has changed",
        ),
        (
            "bounds fail everywhere, and the recipe is worse",
            evidence(0.2, 0.1, coverage=0.6, current_coverage=0.6),
            HELD_BACK,
            "100.0% above",
        ),
        ("all covered, many series", evidence(coverage=1.0, n=200), PASSED, "wider than need be"),
        ("all covered, few series", evidence(coverage=1.0, n=199), PASSED, "within the 0.95 bounds$"),
        ("nothing to compare", None, NOTHING_TO_COMPARE, "published, nothing to compare: no model is in use"),
    ],
)  # fmt: skip
def test_the_rules(case: str, found: GateEvidence | None, verdict: GateVerdict, text: str) -> None:
    result = judge("cpu", found, why_nothing="no model is in use")
    assert result.verdict is verdict, (case, result.reason)
    assert re.search(text, result.reason), result.reason
    assert result.held_back_nights == (verdict is HELD_BACK)
    assert (result.candidate is None) == (found is None)


@pytest.mark.parametrize(("asked", "given"), [(0.8, 1.0), (2.5, 2.5), (float("inf"), 4.0)])
def test_bounds_are_never_narrowed_nor_widened_without_end(asked: float, given: float) -> None:
    found = evidence(coverage=0.5, current_coverage=0.4, widening=asked)
    assert judge("cpu", found).widening == given


def test_a_resource_is_published_after_so_many_nights_with_wider_bounds() -> None:
    previous, verdicts = None, []
    for _ in range(5):
        previous = judge("cpu", evidence(candidate=0.06), previous=previous)
        verdicts.append(previous.verdict)
    held, widened = HELD_BACK, GateVerdict.WIDENED
    assert verdicts == [held, held, held, widened, held]
    last = judge("cpu", evidence(candidate=0.06), previous=replace(HELD, held_back_nights=3))
    assert last.widening == pytest.approx(1.1) and last.held_back_nights == 0
    assert "after 3 nights of being held back, although on 100 series-days" in last.reason


def test_nights_without_new_figures_count_as_well() -> None:
    previous = HELD
    for expected in (2, 3):
        previous = judge("cpu", None, previous=previous)
        assert (previous.verdict, previous.held_back_nights) == (HELD_BACK, expected)
    assert judge("cpu", None, previous=previous).verdict is GateVerdict.WIDENED
    assert judge("cpu", evidence(), previous=previous).held_back_nights == 0, "passing ends the count"


@pytest.mark.parametrize("decided", [HELD, WIDENED])
def test_a_second_run_on_the_same_night_decides_the_same(decided: GateResult) -> None:
    once = judge("cpu", None, previous=decided, same_night=True)
    twice = judge("cpu", None, previous=once, same_night=True)
    assert once == twice and (once.verdict, once.widening) == (decided.verdict, decided.widening)
    assert once.held_back_nights == decided.held_back_nights and once.reason.startswith("decided earlier tonight: ")


def test_bounds_widened_before_do_not_make_tonights_look_bad() -> None:
    found = evidence(coverage=0.7, current_coverage=1.0, widening=1.5)
    assert judge("cpu", found).verdict is HELD_BACK
    again = judge("cpu", found, previous=WIDENED)
    assert (again.verdict, again.widening) == (GateVerdict.WIDENED, 1.5)


def test_force_publishes_and_says_what_it_overruled() -> None:
    forced = judge("cpu", evidence(0.2), force=True, previous=HELD)
    assert forced.verdict is GateVerdict.FORCED and forced.held_back_nights == 0 and forced.widening == 1.0
    assert "forced; else: held back (2 of at most 3 nights)" in forced.reason
    assert "the gate did not ask for" in judge("cpu", evidence(), force=True).reason


def test_a_loss_that_is_no_number_compares_nothing() -> None:
    assert judge("cpu", evidence(candidate=float("nan"))).verdict is NOTHING_TO_COMPARE


def test_what_the_next_night_needs_survives_json() -> None:
    result = judge("cpu", evidence(0.2), previous=HELD)
    document = json.loads(json.dumps(GateReport({"cpu": result}, date(2026, 5, 4)).to_json(), allow_nan=False))
    assert document["cut_off"] == "2026-05-04" and document["resources"]["cpu"]["loss_ratio"] == pytest.approx(4.0)
    restored = GateResult.from_json("cpu", document["resources"]["cpu"])
    assert restored is not None
    assert restored == result
    assert GateReport.from_info(document["resources"]).results == {"cpu": result}
    assert GateReport.from_info("nonsense").results == {}


@pytest.mark.parametrize(
    "document", [None, [], {}, {"verdict": "new"}, {"verdict": "passed", "reason": "", "widening": "x"}]
)
def test_a_manifest_of_another_release_is_as_good_as_none(document: object) -> None:
    assert GateResult.from_json("cpu", document) is None


@pytest.mark.parametrize(("share", "held"), [(0.0, True), (0.49, True), (0.5, False), (1.0, False), (math.nan, False)])
def test_what_is_hardly_measured_any_more_keeps_its_old_arrays(share: float, held: bool) -> None:
    for found in (None, evidence()):
        result = judge("cpu", found, measured_share=share)
        assert (result.verdict is HELD_BACK) is held
        assert ("of what it knows was measured" in result.reason) is held


def test_a_resource_that_stays_unmeasured_is_published_in_the_end() -> None:
    result = None
    for night in range(1, 4):
        result = judge("cpu", None, previous=result, measured_share=0.0)
        assert (result.verdict, result.held_back_nights) == (HELD_BACK, night)
    assert judge("cpu", None, previous=result, measured_share=0.0).verdict is GateVerdict.WIDENED
