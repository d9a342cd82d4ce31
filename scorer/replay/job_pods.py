"""When pods of Jobs and CronJobs are expected to end in a replay: they load their node during their run only.

As in the live tables (scorer.predicted.run_windows), a run covers whole half hours, and a pod that is there stays at
least until the end of the half hour under way, whatever was expected of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from cluster.runs.expected import DEFAULT_RUN
from forecast.calendar import SLOT_MINUTES
from forecast.history import History
from forecast.model import PeakModel
from scorer.replay.recording import Recording
from scorer.replay.window import Window

_SLOT_SECONDS = 60.0 * SLOT_MINUTES


@dataclass(frozen=True, slots=True)
class JobPods:
    """Pods of a recording with the half hour in which a rule expects each to end.

    ending : (n_services,) whether pods of the service run to completion
    end    : (n_pods,) expected slot (exclusive); n_slots of the window = it runs on and on
    """

    ending: Bools
    end: Ints


def job_pods(recording: Recording, run_seconds: Floats) -> JobPods:
    """The pods with an expected end, from their real start. run_seconds: (n_services,) NaN = on and on."""
    slots = run_seconds[recording.service] / _SLOT_SECONDS
    ends = recording.ending[recording.service] & np.isfinite(slots)
    end = np.ceil(recording.started + np.where(ends, slots, 0.0))
    end = np.where(ends, np.maximum(end, recording.birth + 1), recording.n_slots)
    return JobPods(recording.ending, end.astype(np.int64))


def true_runs(recording: Recording) -> JobPods:
    """The pods with their true end, for the oracle alone."""
    end = np.where(recording.ending[recording.service], recording.death, recording.n_slots)
    return JobPods(recording.ending, end)


def expected_runs(model: PeakModel) -> Floats:
    """Seconds that the model expects a pod of each Job owner to run: (n_services,); NaN = not a Job owner."""
    ending = np.array([service.runs_to_completion for service in model.services], dtype=np.bool_)
    return _known(model.run_seconds[:, 0], ending)


def last_weeks_runs(history: History, window: Window) -> Floats:
    """Median seconds of the runs that began and ended in the week before the placement: (n_services,), NaN likewise."""
    ending = np.array([service.runs_to_completion for service in history.services], dtype=np.bool_)
    moment = window.history_slot * _SLOT_SECONDS
    runs = history.runs
    seen = (runs.start >= moment - 7 * 86_400) & (runs.start + runs.seconds <= moment) & ~runs.open.any(axis=1)
    median = np.full(len(ending), np.nan)
    for service in np.unique(runs.service[seen]).tolist():
        median[service] = np.median(runs.seconds[seen & (runs.service == service)])
    return _known(median, ending)


def _known(seconds: AnyFloats, ending: Bools) -> Floats:
    """Seconds of Job owners, the default of the live tables where they are unknown."""
    return np.where(ending, np.where(np.isfinite(seconds), seconds, DEFAULT_RUN), np.nan)
