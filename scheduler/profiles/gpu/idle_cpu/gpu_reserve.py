"""What of a node's CPU and memory is kept for its GPUs that are idle now, so that none is stranded for want of them.

    kept = idle GPUs of the node * what a GPU of its model takes

    takes = (requests of all pods with GPUs of the model + PRIOR_GPUS * the node's share)
            / (GPUs that these pods hold           + PRIOR_GPUS)

    the node's share = allocatable / its GPUs

A mean over the whole cluster, by model, since pods with a large card need more cores than those with a small one. Where
few pods have such a card the node's own share counts more, and alone where none has: of an empty node of an unknown
kind everything is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from base.arrays import Floats, Ints

PRIOR_GPUS: Final = 8
"""As many GPUs as a large machine has: what a few small pods request at night says little of the morning."""

WHOLE: Final = 1000.0
"""Thousandths of a GPU."""


def per_gpu(
    requested: Ints, held: Ints, model: Ints, n_devices: Ints, allocatable: Ints, fixed: Sequence[float | None]
) -> Floats:
    """(n_rows, n_kinds) units that a GPU of each node takes; 0 where there is none.

    requested   : (n_rows, n_kinds) units by pods with GPUs
    held        : (n_rows,) thousandths of GPUs that these pods hold
    model       : (n_rows,) number of the node's model, -1 = unknown, which is one of them
    n_devices   : (n_rows,)
    allocatable : (n_rows, n_kinds) units
    fixed       : (n_kinds,) units to be taken instead; None = measured
    """
    group = model + 1
    n_groups = int(group.max(initial=0)) + 1
    gpus = np.bincount(group, weights=held / WHOLE, minlength=n_groups)  # (n_groups,)
    found = np.zeros(allocatable.shape)
    devices = np.maximum(n_devices, 1)
    for kind, said in enumerate(fixed):
        if said is not None:
            found[:, kind] = said
            continue
        total = np.bincount(group, weights=requested[:, kind], minlength=n_groups)  # (n_groups,)
        share = allocatable[:, kind] / devices  # (n_rows,)
        found[:, kind] = (total[group] + PRIOR_GPUS * share) / (gpus[group] + PRIOR_GPUS)
    found[n_devices == 0] = 0.0
    return found


def kept_for_idle(idle: Ints, of_a_gpu: Floats) -> Ints:
    """(n_rows, n_kinds) whole units, rounded up.

    idle     : (n_rows,) thousandths of GPUs that are free
    of_a_gpu : (n_rows, n_kinds), see per_gpu
    """
    kept = idle[:, None] * of_a_gpu / WHOLE
    return np.ceil(np.round(kept, 6)).astype(np.int64)
