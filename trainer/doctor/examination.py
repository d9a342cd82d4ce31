"""All checks over one history, and what they found, the largest share of the load first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from forecast.cold_start import ESTABLISHED_DAYS
from forecast.history import History
from forecast.usage_limits import CutSeries
from trainer.doctor import balance, ceilings, day_shapes, gaps, lone_samples, removed_values, repetition, unknowns
from trainer.doctor.evidence import Evidence
from trainer.doctor.finding import Finding, Kind
from trainer.history.cleaning import CleaningReport


@dataclass(frozen=True, slots=True)
class Check:
    """days_needed: of the history; with fewer the check says nothing
    account: the finding says that what was read does not add up; `train` looks for it, too. A healthy cluster has none
    """

    kind: Kind
    look: Callable[[Evidence], Finding | None]
    days_needed: int = 1
    account: bool = False


CHECKS: Final = (
    Check(Kind.SHORT_HISTORY, gaps.short_history),
    Check(Kind.MISSING_DAYS, gaps.missing_days),
    Check(Kind.MISSING_SAMPLES, gaps.missing_samples),
    Check(Kind.NODE_GAPS, gaps.node_gaps),
    Check(Kind.YOUNG_SERVICES, gaps.young_services, ESTABLISHED_DAYS + 1),  # with fewer all of them are young
    Check(Kind.ONE_OFF_OWNERS, repetition.one_off_owners),
    Check(Kind.UNMEASURED, unknowns.unmeasured_services),
    Check(Kind.PER_NODE_ONLY, unknowns.per_node_only),
    Check(Kind.UNMEASURED_RESOURCES, unknowns.unmeasured_resources),
    Check(Kind.PODS_AND_NODES, balance.pods_and_nodes, account=True),
    Check(Kind.UNKNOWN_REQUESTS, unknowns.unknown_requests),
    Check(Kind.UNKNOWN_CAPACITY, unknowns.unknown_capacity),
    Check(Kind.IMPOSSIBLE_VALUES, removed_values.impossible_values),
    Check(Kind.ABOVE_CAPACITY, removed_values.above_capacity),
    Check(Kind.CPU_CEILING, ceilings.cpu_ceilings, 7),
    Check(Kind.FULL_NODES, ceilings.full_nodes),
    Check(Kind.COUNTER_RESETS, lone_samples.counter_resets, 7),
    Check(Kind.NEVER_REPEATS, repetition.never_repeats, repetition.DAYS_NEEDED),
    Check(Kind.UNEVEN_PEAKS, repetition.uneven_peaks, 7),
    Check(Kind.WRONG_TIMES, removed_values.wrong_times, account=True),
    Check(Kind.SHIFTED_CLOCK, day_shapes.shifted_clock, day_shapes.DAYS_NEEDED, account=True),
    Check(Kind.TIME_ZONE, day_shapes.time_zone),
    Check(Kind.NO_HOLIDAYS, day_shapes.no_holidays),
)


@dataclass(frozen=True, slots=True)
class Examination:
    """not_found, not_judged: checks that found nothing, and those the history is too short for, with the days needed"""

    history: History
    findings: tuple[Finding, ...]
    not_found: tuple[Kind, ...]
    not_judged: tuple[tuple[Kind, int], ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "days": self.history.n_days,
            "first_day": str(self.history.days[0]),
            "last_day": str(self.history.days[-1]),
            "services": len(self.history.services),
            "nodes": len(self.history.nodes),
            "time_zone": self.history.calendar.time_zone,
            "holiday_country": self.history.calendar.holiday_country,
            "findings": [finding.to_json() for finding in self.findings],
            "not_found": [kind.value for kind in self.not_found],
            "not_judged": [{"finding": kind.value, "days_needed": days} for kind, days in self.not_judged],
        }


def account(history: History, report: CleaningReport, cut: Sequence[CutSeries] = ()) -> tuple[Finding, ...]:
    """What does not add up in what was read: the checks with `account` alone, as few seconds as they take."""
    checks = [check for check in CHECKS if check.account and history.n_days >= check.days_needed]
    evidence = Evidence.of(history, report, cut)
    return tuple(finding for check in checks if (finding := check.look(evidence)) is not None)


def examine(history: History, report: CleaningReport, cut: Sequence[CutSeries] = ()) -> Examination:
    """report, cut: what reading the history removed"""
    evidence = Evidence.of(history, report, cut)
    judged = [check for check in CHECKS if history.n_days >= check.days_needed]
    looked = [(check.kind, check.look(evidence)) for check in judged]
    findings = [finding for _, finding in looked if finding is not None]
    return Examination(
        history=history,
        findings=tuple(sorted(findings, key=lambda finding: -float(np.nan_to_num(finding.load_share).max()))),
        not_found=tuple(kind for kind, finding in looked if finding is None),
        not_judged=tuple((check.kind, check.days_needed) for check in CHECKS if check not in judged),
    )
