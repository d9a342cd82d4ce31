"""All checks over one history, and what they found, the largest share of the load first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from forecast.cold_start import ESTABLISHED_DAYS
from forecast.history import History
from forecast.usage_limits import CutSeries
from trainer.audit import (
    above_capacity,
    day_shapes,
    gaps,
    implausible_values,
    limits,
    pods_and_nodes,
    repetition,
    unknowns,
)
from trainer.audit.finding import AuditEvidence, Finding, FindingKind
from trainer.history.cleaning import CleaningReport


@dataclass(frozen=True, slots=True)
class Check:
    """days_needed: of the history; with fewer the check says nothing
    account: the finding says that what was read does not add up, or is not all; `train` looks for it, too. A healthy
    cluster has none
    """

    kind: FindingKind
    look: Callable[[AuditEvidence], Finding | None]
    days_needed: int = 1
    account: bool = False


CHECKS: Final = (
    Check(FindingKind.SHORT_HISTORY, gaps.short_history),
    Check(FindingKind.MISSING_DAYS, gaps.missing_days),
    Check(FindingKind.MISSING_SAMPLES, gaps.missing_samples),
    Check(FindingKind.NODE_GAPS, gaps.node_gaps),
    Check(FindingKind.YOUNG_SERVICES, gaps.young_services, ESTABLISHED_DAYS + 1),  # with fewer all of them are young
    Check(FindingKind.ONE_OFF_OWNERS, repetition.one_off_owners),
    Check(FindingKind.UNMEASURED, unknowns.unmeasured_services),
    Check(FindingKind.PER_NODE_ONLY, unknowns.per_node_only),
    Check(FindingKind.UNMEASURED_RESOURCES, unknowns.unmeasured_resources),
    Check(FindingKind.PODS_AND_NODES, pods_and_nodes.pods_and_nodes, account=True),
    Check(FindingKind.UNKNOWN_REQUESTS, unknowns.unknown_requests),
    Check(FindingKind.UNKNOWN_CAPACITY, unknowns.unknown_capacity),
    Check(FindingKind.IMPOSSIBLE_VALUES, implausible_values.impossible_values),
    Check(FindingKind.ABOVE_CAPACITY, above_capacity.above_capacity),
    Check(FindingKind.CPU_CEILING, unknowns.cpu_ceilings, 7),
    Check(FindingKind.HIDDEN_DEMAND, limits.hidden_demand_of_services, account=True),
    Check(FindingKind.FULL_NODES, unknowns.full_nodes),
    Check(FindingKind.COUNTER_RESETS, implausible_values.counter_resets, 7),
    Check(FindingKind.NEVER_REPEATS, repetition.never_repeats, repetition.DAYS_NEEDED),
    Check(FindingKind.UNEVEN_PEAKS, repetition.uneven_peaks, 7),
    Check(FindingKind.WRONG_TIMES, implausible_values.wrong_times, account=True),
    Check(FindingKind.SHIFTED_CLOCK, day_shapes.shifted_clock, day_shapes.DAYS_NEEDED, account=True),
    Check(FindingKind.TIME_ZONE, day_shapes.time_zone),
    Check(FindingKind.NO_HOLIDAYS, day_shapes.no_holidays),
)


@dataclass(frozen=True, slots=True)
class Examination:
    """not_found, not_judged: checks that found nothing, and those the history is too short for, with the days needed"""

    history: History
    findings: tuple[Finding, ...]
    not_found: tuple[FindingKind, ...]
    not_judged: tuple[tuple[FindingKind, int], ...]

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
    """What does not add up in what was read, or is not all: the checks with `account` alone, a few seconds long."""
    checks = [check for check in CHECKS if check.account and history.n_days >= check.days_needed]
    evidence = AuditEvidence.of(history, report, cut)
    return tuple(finding for check in checks if (finding := check.look(evidence)) is not None)


def examine(history: History, report: CleaningReport, cut: Sequence[CutSeries] = ()) -> Examination:
    """report, cut: what reading the history removed"""
    evidence = AuditEvidence.of(history, report, cut)
    judged = [check for check in CHECKS if history.n_days >= check.days_needed]
    looked = [(check.kind, check.look(evidence)) for check in judged]
    findings = [finding for _, finding in looked if finding is not None]
    return Examination(
        history=history,
        findings=tuple(sorted(findings, key=lambda finding: -float(np.nan_to_num(finding.load_share).max()))),
        not_found=tuple(kind for kind, finding in looked if finding is None),
        not_judged=tuple((check.kind, check.days_needed) for check in CHECKS if check not in judged),
    )
