"""A day of single pods on equal nodes of 10 cores, with rules that all know the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from base.arrays import Floats
from forecast.resources import CPU
from scorer.replay.curves import true_future
from scorer.replay.preparation import Prepared
from scorer.replay.recording import Recording
from scorer.replay.window import ReplayWindow
from tests.rebalancer.trajectory.tiny_recording import tiny_recording

N_SLOTS = 48


def prepared_of(recording: Recording, *, first_slot: int = 0) -> Prepared:
    truth = true_future(recording, np.zeros(recording.n_services, dtype=np.bool_))
    window = ReplayWindow(7, (date(2026, 11, 9),), first_slot, recording.n_slots // N_SLOTS)
    return Prepared(window, recording, {"last_week": truth, "forecast": truth, "oracle": truth}, {})


def steady(cpu: Sequence[float], *, n_nodes: int, requests: float = 0.1) -> Prepared:
    """Pods that use so many cores all day."""
    return prepared_of(tiny_recording(cpu, [-1] * len(cpu), n_nodes=n_nodes, n_slots=N_SLOTS, requests=requests))


def by_day(curves: Floats, *, n_nodes: int) -> Prepared:
    """Pods with these curves, (n_pods, 48) cores."""
    recording = tiny_recording([0.0] * len(curves), [-1] * len(curves), n_nodes=n_nodes, n_slots=N_SLOTS, requests=1.0)
    load = recording.load.copy()
    load[:, CPU] = curves
    return prepared_of(replace(recording, load=load, live=load[:, :, 0].astype(np.float64)))
