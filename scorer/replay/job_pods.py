"""When pods of Jobs and CronJobs are expected to end in a replay: they load their node during their run only.

As in the live tables (scorer.predicted.runs), a run covers whole half hours, and a pod that is there stays at least
until the end of the half hour under way, whatever was expected of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecast.arrays import AnyFloats, Bools, Floats, Ints
from forecast.calendar import SLOT_MINUTES
from forecast.history import History
from forecast.model import PeakModel
from scorer.replay.recording import Recording
from scorer.replay.window import Window
from scorer.runs.expected import DEFAULT_RUN

__all__ = ["JobPods", "expected_runs", "job_pods", "last_weeks_runs", "true_runs"]

_SLOT_SECONDS = 60.0 * SLOT_MINUTES


@dataclass(frozen=True, slots=True)
class JobPods:
    """Pods of a recording with the half hour in which a rule expects each to end.

    ending       : (n_services,) whether pods of the service run to completion
    service      : (n_pods,)
    birth, death : (n_pods,) slots, as in the recording
    end          : (n_pods,) expected slot (exclusive); n_slots = it runs on and on
    n_slots      : of the window
    """

    ending: Bools
    service: Ints
    birth: Ints
    death: Ints
    end: Ints
    n_slots: int

    def running(self, slot: int) -> Floats:
        """Pods of Job owners that are there in `slot`, until each is expected to end: (n_services, n_slots).

        It reads of birth and death only whether a pod is there now.
        """
        there = (self.birth <= slot) & (self.death > slot) & self.ending[self.service]
        change = np.zeros((len(self.ending), self.n_slots + 1))
        np.add.at(change, (self.service[there], np.full(int(there.sum()), slot)), 1.0)
        np.add.at(change, (self.service[there], np.minimum(np.maximum(self.end[there], slot + 1), self.n_slots)), -1.0)
        return np.asarray(change.cumsum(axis=1)[:, : self.n_slots])


def job_pods(recording: Recording, run_seconds: Floats) -> JobPods:
    """The pods with an expected end, from their real start. run_seconds: (n_services,) NaN = on and on."""
    slots = run_seconds[recording.service] / _SLOT_SECONDS
    ends = recording.ending[recording.service] & np.isfinite(slots)
    end = np.ceil(recording.started + np.where(ends, slots, 0.0))
    return _with_ends(recording, np.where(ends, np.maximum(end, recording.birth + 1), recording.n_slots))


def true_runs(recording: Recording) -> JobPods:
    """The pods with their true end, for the oracle alone."""
    return _with_ends(recording, np.where(recording.ending[recording.service], recording.death, recording.n_slots))


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


def _with_ends(recording: Recording, end: Floats | Ints) -> JobPods:
    return JobPods(
        recording.ending, recording.service, recording.birth, recording.death, end.astype(np.int64), recording.n_slots
    )
