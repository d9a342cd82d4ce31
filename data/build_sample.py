"""Rebuild data/sample from the traces: `python data/build_sample.py --traces DIR`.

48 services on 50 nodes over 32 days at half an hour. The curves are those of real servers (SMD and ASD, both MIT);
names, pod counts, sizes, shifts, requests, nodes and log bytes are constructed here. README.md says which is which.
The seed is fixed: the same traces give the same files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from base.arrays import AnyFloats, Floats, Floats32, Ints
from base.errors import InputError
from benchmarks.clusters.autoscaling import autoscaled_replicas, lives
from benchmarks.clusters.cluster import SLOTS_PER_DAY, Cluster, Service
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.placement import place_natively
from benchmarks.clusters.pods import log_uniform, pod_name, real_residuals, replica_noise, wrong_requests
from benchmarks.clusters.traces import Curves, read_asd, read_smd
from data.sample_services import SERVICES
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES

SEED = 6
DAYS = 32  # what SMD has, after moving its machines' peaks to the evening
TIME_ZONE = "Europe/Berlin"
FIRST_DAY = "2026-01-12"  # a Monday; no public holiday and no change of clocks before 2026-02-13
EVENING_SLOT = 40  # 20:00
EVENING_METRICS = tuple(f"m{number:02d}" for number in range(9, 19))  # those of ASD that follow the servers' load
SLOW_METRICS = ("m01", "m04", "m05")  # those that hardly move, as memory does
GIB = 1024.0**3
MIB = 1024.0**2

#: 24 small, 16 middle and 10 large nodes: 96 units of 8 cores and 32 GiB.
NODE_UNITS: Ints = np.repeat([1, 2, 4], [24, 16, 10])
UNIT_CAPACITY: Floats = np.array([8.0, 32 * GIB, 160e6, 320e6, 2.0e6])
UNIT_RESERVED: Floats = np.array([0.25, 1.5 * GIB])  # system-reserved and kube-reserved
#: 99th percentile of the cluster's load as a share of capacity, per resource.
TARGET_LOAD: Floats = np.array([0.66, 0.55, 0.46, 0.47, 0.40])
#: How much a replica jitters around its own level, per resource (standard deviation, relative).
JITTER = (0.04, 0.01, 0.06, 0.04, 0.05)
#: Requests of all pods at the busiest time, at most, as a share of allocatable.
REQUESTED_SHARE = 0.80
#: Mean use of one unit of node by kubelet, daemons and the log collector.
UNIT_BASE: Floats = np.array([0.16, 0.7 * GIB, 1.2e6, 1.0e6, 4.0e3])


def build(traces: Path, out: Path) -> Cluster:
    """Build the sample and write it to `out`."""
    cluster = sample_cluster(read_smd(traces), read_asd(traces))
    write_history(cluster, out, mantissa_bits=7)
    return cluster


def sample_cluster(smd: Curves, asd: Curves) -> Cluster:
    """The sample in memory."""
    rng = np.random.default_rng(SEED)
    asd = asd.last_days(DAYS)
    n_slots = DAYS * SLOTS_PER_DAY
    residuals = real_residuals(np.concatenate([_evening_metrics(asd)[1], smd.values["cpu"][:, :n_slots]]))
    curves = _service_curves(rng, smd, asd)  # (n_services, n_resources, n_slots)
    level = _service_levels(rng)  # (n_services, n_resources)
    replicas = _replicas(rng, curves[:, CPU])  # (n_services, n_slots)

    pods: list[str] = []
    service_of: list[int] = []
    firsts: list[Ints] = []
    ends: list[Ints] = []
    usage: list[Floats32] = []
    for index, spec in enumerate(SERVICES):
        first, end = lives(replicas[index])
        replica_set = pod_name(rng, f"{spec.name}-##########")
        typical = float(np.quantile(replicas[index], 0.9))
        for ordinal, (birth, death) in enumerate(zip(first, end, strict=True)):
            name = f"{spec.name}-{ordinal}" if spec.kind == "StatefulSet" else pod_name(rng, f"{replica_set}-#####")
            # Load is shared out evenly: fewer replicas carry more each, memory is everyone's own.
            share = np.ones((len(RESOURCES), n_slots))
            share[[CPU, DISK, NETWORK, LOG]] = typical / replicas[index]
            noise = np.stack([replica_noise(rng, residuals, n_slots, factor=0.05, jitter=j) for j in JITTER])
            series = (level[index][:, None] * curves[index] * share * noise).astype(np.float32)
            series[:, :birth] = np.nan
            series[:, death:] = np.nan
            pods.append(name)
            service_of.append(index)
            usage.append(series)
        firsts.append(first)
        ends.append(end)

    allocatable = NODE_UNITS[:, None] * (UNIT_CAPACITY[[CPU, MEMORY]] - UNIT_RESERVED)
    capacity = NODE_UNITS[:, None] * UNIT_CAPACITY
    table = np.stack(usage)  # (n_pods, n_resources, n_slots)
    base = _base(rng, asd)
    table *= _scale_to_target(table, base, capacity)[:, None]
    owner: Ints = np.array(service_of, dtype=np.int64)
    services = _services(rng, table, owner, REQUESTED_SHARE * allocatable.sum(axis=0))
    first, end = np.concatenate(firsts), np.concatenate(ends)
    requests = np.array([[services[s].request_cpu_cores, services[s].request_memory_bytes] for s in owner])
    return Cluster(
        time_zone=TIME_ZONE,
        holiday_country="DE",
        start=pd.Timestamp(FIRST_DAY, tz=TIME_ZONE).tz_convert("UTC"),
        services=services,
        pods=tuple(pods),
        service_of=owner,
        first=first,
        end=end,
        node_of=place_natively(rng, requests, allocatable, first, end),
        usage=table,
        nodes=tuple(
            f"{size}-{number:02d}"
            for number, size in enumerate(np.array(["", "small", "medium", "", "large"])[NODE_UNITS], start=1)
        ),
        base=base,
        capacity=capacity,
        allocatable=allocatable,
    )


def _service_curves(rng: np.random.Generator, smd: Curves, asd: Curves) -> Floats32:
    """(n_services, n_resources, n_slots): real curves, 1 = the median daily peak. Log follows the request-like one."""
    servers, _ = _evening_metrics(asd)
    n_slots = DAYS * SLOTS_PER_DAY
    curves = np.zeros((len(SERVICES), len(RESOURCES), n_slots), dtype=np.float32)
    for index, spec in enumerate(SERVICES):
        if spec.machine is not None:
            offset = _hours_to_evening(smd, spec.machine)
            for resource, name in ((CPU, "cpu"), (MEMORY, "memory"), (DISK, "disk"), (NETWORK, "network")):
                curves[index, resource] = _peak_units(smd.of(spec.machine, name)[offset : offset + n_slots])
            requests = curves[index, NETWORK]
        else:
            server = servers[int(rng.integers(len(servers)))]
            picks = rng.permutation(EVENING_METRICS)
            memory = str(rng.choice(SLOW_METRICS))
            for resource, metric in ((CPU, picks[0]), (MEMORY, memory), (DISK, picks[3]), (NETWORK, picks[1])):
                curves[index, resource] = _peak_units(asd.of(f"{server}/{metric}", "cpu"))
            requests = _peak_units(asd.of(f"{server}/{picks[2]}", "cpu"))
        # No public trace has log bytes: lines follow requests, over a floor of health checks and timers.
        curves[index, LOG] = 0.04 + 0.96 * requests
        curves[index] = np.roll(curves[index], spec.shift_hours * 2, axis=1)
    return curves


def _evening_metrics(asd: Curves) -> tuple[list[str], Floats32]:
    """The ASD servers that peak in the evening, and the load-like metrics of all servers as (n, n_slots)."""
    rows = [i for i, e in enumerate(asd.entities) if e.split("/")[1] in EVENING_METRICS]
    curves = asd.values["cpu"][rows]  # (n, n_slots)
    profiles = curves.reshape(len(rows), -1, SLOTS_PER_DAY).mean(axis=1)
    busiest = dict(zip([asd.entities[i] for i in rows], profiles.argmax(axis=1), strict=True))
    # Some servers have a plateau from noon on; only those whose every metric is highest after 18:00 count.
    servers = [
        server
        for server in sorted({entity.split("/")[0] for entity in busiest})
        if min(slot for entity, slot in busiest.items() if entity.split("/")[0] == server) >= EVENING_SLOT - 4
    ]
    return servers, curves


def _hours_to_evening(smd: Curves, machine: str) -> int:
    """Slots to drop at the front of an SMD machine so that its busiest hours fall on 20:00 local.

    The set has no clock; its start is set anyway. 22 hours are the most that 32 whole days leave.
    """
    profile = sum(
        _peak_units(smd.of(machine, name)[: DAYS * SLOTS_PER_DAY]).reshape(DAYS, SLOTS_PER_DAY).mean(axis=0)
        for name in ("cpu", "network")
    )  # (48,)
    smooth = np.convolve(np.tile(profile, 3), np.ones(5) / 5, mode="same")[SLOTS_PER_DAY : 2 * SLOTS_PER_DAY]
    offset = int(smooth.argmax() - EVENING_SLOT) % SLOTS_PER_DAY
    recorded = int(np.isfinite(smd.of(machine, "cpu")).sum())
    return offset if offset + DAYS * SLOTS_PER_DAY <= recorded else 0


def _peak_units(curve: AnyFloats) -> Floats32:
    """A curve in units of its median daily peak, cut at 1.5 of it (labelled anomalies would set the scale)."""
    days = curve[: len(curve) // SLOTS_PER_DAY * SLOTS_PER_DAY].reshape(-1, SLOTS_PER_DAY)
    scaled: Floats32 = np.clip(curve / np.median(days.max(axis=1)), 0.0, 1.5).astype(np.float32)
    return scaled


def _service_levels(rng: np.random.Generator) -> Floats:
    """(n_services, n_resources) usage of one pod at a typical daily peak, before the whole cluster is scaled."""
    n = len(SERVICES)
    cpu = log_uniform(rng, 0.2, 2.5, n)
    level = np.stack(
        [
            cpu,
            np.sqrt(cpu) * log_uniform(rng, 0.7, 3.0, n) * GIB,
            np.sqrt(cpu) * log_uniform(rng, 0.5, 2.0, n),
            np.sqrt(cpu) * log_uniform(rng, 0.5, 2.0, n),
            np.sqrt(cpu) * log_uniform(rng, 0.5, 2.0, n),
        ],
        axis=1,
    )
    level[:, DISK] *= [spec.disk for spec in SERVICES]
    level[:, NETWORK] *= [spec.network for spec in SERVICES]
    level[:, LOG] *= [spec.log for spec in SERVICES]
    return level


def _replicas(rng: np.random.Generator, cpu: Floats32) -> Ints:
    """(n_services, n_slots): constant, or following load for the autoscaled ones."""
    replicas = np.zeros(cpu.shape, dtype=np.int64)
    for index, spec in enumerate(SERVICES):
        if spec.autoscaled:
            most = int(rng.integers(7, 13))
            replicas[index] = autoscaled_replicas(cpu[index] * most, 1.0, minimum=2, maximum=24)
        elif spec.kind == "StatefulSet":
            replicas[index] = int(rng.integers(3, 7))
        elif spec.shift_hours:
            replicas[index] = int(rng.integers(6, 14))
        else:
            replicas[index] = int(rng.integers(16, 24))
    return replicas


def _base(rng: np.random.Generator, asd: Curves) -> Floats32:
    """(n_nodes, n_resources, n_slots) kubelet, daemons and collector: small, a little busier in the evening."""
    _, metrics = _evening_metrics(asd)
    rhythm = _peak_units(metrics.mean(axis=0))  # (n_slots,)
    residuals = real_residuals(metrics)
    base = np.zeros((len(NODE_UNITS), len(RESOURCES), metrics.shape[1]), dtype=np.float32)
    for node, units in enumerate(NODE_UNITS):
        for resource in range(len(RESOURCES)):
            rise = 0.05 if resource == MEMORY else 0.4
            noise = replica_noise(rng, residuals, metrics.shape[1], factor=0.1, jitter=0.03)
            base[node, resource] = units**0.8 * UNIT_BASE[resource] * (1 - rise / 2 + rise * rhythm) * noise
    return base


def _scale_to_target(usage: Floats32, base: Floats32, capacity: Floats) -> Floats32:
    """(n_resources,) factors that bring the cluster's 99th-percentile load to its target share of capacity."""
    pods = np.nansum(usage, axis=0, dtype=np.float64)  # (n_resources, n_slots)
    daemons = base.sum(axis=0, dtype=np.float64)
    wanted = TARGET_LOAD * capacity.sum(axis=0) - np.quantile(daemons, 0.99, axis=1)
    factors: Floats32 = (wanted / np.quantile(pods, 0.99, axis=1)).astype(np.float32)
    return factors


def _services(rng: np.random.Generator, usage: Floats32, service_of: Ints, requestable: Floats) -> tuple[Service, ...]:
    """Services with requests: mean use of a pod times a log-normal error, in the round figures people write.

    requestable: (2,) CPU cores and memory bytes; where all pods together ask for more, everyone asks for less (a
    cluster that runs has its pods placed).
    """
    means = np.array(
        [[np.nanmean(usage[service_of == s, r], dtype=np.float64) for r in (CPU, MEMORY)] for s in range(len(SERVICES))]
    )
    wrong = np.stack(
        [wrong_requests(rng, means[:, 0], spread=0.7), wrong_requests(rng, means[:, 1], bias=0.15, spread=0.3)], axis=1
    )
    most = np.array([np.isfinite(usage[service_of == s, CPU]).sum(axis=0).max() for s in range(len(SERVICES))])
    wrong *= np.minimum(1.0, requestable / (most @ wrong))
    cpu = np.clip(np.round(wrong[:, 0] / 0.05) * 0.05, 0.05, 4.0)
    memory = np.maximum(np.round(wrong[:, 1] / (64 * MIB)), 1) * 64 * MIB
    return tuple(
        Service(spec.namespace, spec.kind, spec.name, round(float(cpu[i]), 3), float(memory[i]), spec.autoscaled)
        for i, spec in enumerate(SERVICES)
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--traces", type=Path, required=True, help="directory with smd.parquet and asd.parquet")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "sample")
    options = parser.parse_args(arguments)
    try:
        build(options.traces, options.out)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
