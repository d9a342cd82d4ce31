"""What was not measured although it was there: days, half hours of services, half hours of nodes; and what is young."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.cold_start import ESTABLISHED_DAYS
from forecast.fit_inputs import with_earlier_days
from forecast.history import History
from forecast.resources import RESOURCES
from trainer.audit.finding import (
    RECENT_DAYS,
    AuditEvidence,
    Finding,
    FindingKind,
    cluster_finding,
    node_finding,
    service_finding,
)

MOST_MISSING: Final = 0.05
"""Share of half hours that may be missing without a finding."""

_DAYS_NAMED: Final = 5


def expected_slots(history: History) -> Ints:
    """Slots of each day that hold an instant: (n_days,); two fewer on the day the clocks go forward."""
    midnights = [history.calendar.midnight(day) for day in (*history.days, history.days[-1] + timedelta(days=1))]
    seconds = np.diff([moment.timestamp() for moment in midnights])
    return np.minimum(np.rint(seconds / (60 * SLOT_MINUTES)), SLOTS_PER_DAY).astype(np.int64)


def missing_days(evidence: AuditEvidence) -> Finding | None:
    """Finds half hours without any data; its share of the load is their share of the time."""
    history = evidence.history
    there = np.isfinite(history.replicas).any(axis=0)  # (n_days, 48)
    expected = expected_slots(history)
    # An export may begin or end within a day: that is no gap.
    lacking = (_from_first_to_last(there.reshape(1, -1)).reshape(there.shape) & ~there).sum(axis=1)
    missing = np.maximum(lacking - (SLOTS_PER_DAY - expected), 0)  # (n_days,)
    gone = [day for day, lost in zip(history.days, missing > expected / 2, strict=True) if lost]
    elsewhere = int(missing[missing <= expected / 2].sum())
    if not missing.any():
        return None
    named = ", ".join(map(str, gone[:_DAYS_NAMED])) + (", ..." if len(gone) > _DAYS_NAMED else "")
    return cluster_finding(
        FindingKind.MISSING_DAYS,
        evidence,
        share=float(missing.sum() / expected.sum()),
        what=f"{len(gone)} of {len(history.days)} days have no data for most of the day"
        + (f" ({named})" if gone else "")
        + (f", and {elsewhere:,} half hours are missing on other days" if elsewhere else ""),
        advice="keep Prometheus and the scrapes of cAdvisor and kube-state-metrics up (two replicas, or remote write "
        "to a store that is), and run train each night: "
        "it reads late samples again, as far back as the server keeps them",
    )


def missing_samples(evidence: AuditEvidence) -> Finding | None:
    """Finds services that had pods whose usage was not measured."""
    recent = evidence.recent
    present = recent.replicas > 0
    n_present = np.maximum(present.sum(axis=(1, 2)), 1)
    share = np.zeros(recent.usage_per_pod.shape[:2])
    for r in range(len(RESOURCES)):
        measured = np.isfinite(recent.usage_per_pod[:, r])
        lost = (present & ~measured).sum(axis=(1, 2)) / n_present
        share[:, r] = np.where(measured.any(axis=(1, 2)), lost, 0.0)  # never measured: `unmeasured`
    return service_finding(
        FindingKind.MISSING_SAMPLES,
        evidence,
        share > MOST_MISSING,
        what=f"{{n}} ran, but more than {100 * MOST_MISSING:g} % of their half hours of the last {recent.n_days} days "
        "were not measured",
        advice="look at up and scrape_duration_seconds of the kubelet's cAdvisor job, at scrape_samples_post_metric_"
        "relabeling (sample_limit), and at relabelings that drop these namespaces; what was cut because the node used "
        "less is named by train --report",
        detail=lambda s, r: f"{100 * share[s, r]:.0f} % of its half hours missing",
    )


def node_gaps(evidence: AuditEvidence) -> Finding | None:
    """Finds nodes that were not measured while pods of the cluster were."""
    recent = evidence.recent
    with_data = np.isfinite(recent.replicas).any(axis=0)  # (n_days, 48)
    share = np.zeros(recent.node_usage.shape[:2])
    for r in range(len(RESOURCES)):
        measured = np.isfinite(recent.node_usage[:, r]).reshape(len(recent.nodes), -1)
        there = _from_first_to_last(measured) & with_data.ravel()
        share[:, r] = (there & ~measured).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return node_finding(
        FindingKind.NODE_GAPS,
        evidence,
        share > MOST_MISSING,
        what=f"{{n}} miss more than {100 * MOST_MISSING:g} % of their half hours between their first and last sample",
        advice="look at up of node-exporter on these nodes: their base load and the weights of their pods are "
        "learned from what is left",
        detail=lambda n, r: f"{100 * share[n, r]:.0f} % of its half hours missing",
    )


def short_history(evidence: AuditEvidence) -> Finding | None:
    """Says what a history of fewer than four weeks cannot show."""
    n_days = evidence.history.n_days
    if n_days >= RECENT_DAYS:
        return None
    if n_days < ESTABLISHED_DAYS:
        effect = "the model is a cold start: no service has seen each day of the week"
    elif n_days < 2 * ESTABLISHED_DAYS:
        effect = "no day can be compared with the same day of the week before"
    else:
        effect = "each day of the week was seen fewer than four times"
    return cluster_finding(
        FindingKind.SHORT_HISTORY,
        evidence,
        what=f"{n_days} whole local days, {RECENT_DAYS} are looked at: {effect}",
        advice="run train --history each night, so that the history outgrows the retention of Prometheus "
        "(train.keep_days), or read more of a long-term store at once with train --days",
    )


def young_services(evidence: AuditEvidence) -> Finding | None:
    """Finds services that began within the last week of the history, and did not move here with their past."""
    history = with_earlier_days(evidence.history)
    own_days = np.zeros(history.usage_per_pod.shape[:2])
    for r in range(len(RESOURCES)):
        measured = np.isfinite(history.usage_per_pod[:, r])
        first = measured.any(axis=2).argmax(axis=1)
        # A gap later in its life makes no service young.
        own_days[:, r] = np.where(measured.any(axis=(1, 2)), history.n_days - first, np.inf)
    is_job = np.array([service.runs_to_completion for service in history.services], dtype=np.bool_)
    return service_finding(
        FindingKind.YOUNG_SERVICES,
        evidence,
        (own_days < ESTABLISHED_DAYS) & ~is_job[:, None],
        what=f"{{n}} were first seen less than {ESTABLISHED_DAYS} days ago: they borrow the shape of similar services",
        advice="nothing, if they are new. If one was renamed or came from another cluster, name what it was in "
        "moved.yaml (docs/operate/train.md, Services that moved). Set requests of new services near their usage: a "
        "cold start scales by them",
        detail=lambda s, r: f"{own_days[s, r]:.0f} days",
    )


def _from_first_to_last(measured: Bools) -> Bools:
    """(n_rows, n_slots) whether a slot lies between the first and the last measured one of its row, both included."""
    return np.maximum.accumulate(measured, axis=1) & np.maximum.accumulate(measured[:, ::-1], axis=1)[:, ::-1]
