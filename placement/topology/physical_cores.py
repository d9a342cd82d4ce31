"""Whole physical cores: which nodes of option full-pcpus-only give them to a pod, and how many pods break: pure.

The kubelet takes whole cores first, and single threads from cores that are in use already (takeByTopologyNUMAPacked in
pkg/kubelet/cm/cpumanager/cpu_assignment.go). So of a zone with `left` CPUs, `left mod threads` are threads of a core
that is partly in use, as long as pods leave in the order that keeps cores together. More of them cannot be seen.
"""

from __future__ import annotations

import numpy as np

from base.arrays import Bools, Ints
from placement.topology.aligned_needs import MILLI, AlignedNeeds
from placement.topology.alignment import NOWHERE, ZonesLeft


def is_multiple(needs: AlignedNeeds, threads: Ints) -> Bools:
    """(n_nodes,) every container asks for whole physical cores (enforceSMTAlignment in policy_static.go).

    threads: (n_nodes,) CPUs of one physical core, at least 1
    """
    cores = np.asarray(needs.cores, dtype=np.int64)
    return np.asarray((cores % threads[:, None] == 0).all(axis=1))


def pods_in_full_cores(needs: AlignedNeeds, left: ZonesLeft, threads: Ints) -> Ints:
    """(n_nodes,) like pods for which the node has whole physical cores; threads as above."""
    column = left.kinds.get("cpu")
    if not needs.cores:
        return np.full(len(threads), NOWHERE, dtype=np.int64)
    room = np.where(is_multiple(needs, threads), NOWHERE, 0)
    if column is None:
        return room
    known = left.reports(column)
    published = np.where(left.there & known[:, None], left.units[:, :, column] + left.pending[:, column, None], 0)
    of_core = threads * MILLI
    whole = (published // of_core[:, None]).sum(axis=1) * of_core - left.pending[:, column]  # (n_nodes,)
    spare = whole - needs.cores_at_once * MILLI
    pods = np.where(spare >= 0, spare // needs.pod["cpu"] + 1, 0)
    return np.asarray(np.where(known, np.minimum(room, pods), room))


def loose_threads(units: Ints, left: ZonesLeft, threads: Ints) -> Ints:
    """(n_nodes,) threads that are left of cores in use.

    units: (n_nodes, n_zones, n_kinds) as of ZonesLeft; threads: (n_nodes,) at least 1
    """
    column = left.kinds.get("cpu")
    if column is None:
        return np.zeros(len(threads), dtype=np.int64)
    known = left.there & left.reports(column)[:, None]
    return np.asarray((np.where(known, units[:, :, column], 0) // MILLI % threads[:, None]).sum(axis=1))
