"""`python -m benchmarks.clusters`: build benchmark histories from the traces, or play a scenario on a built one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from base.errors import InputError
from benchmarks.clusters.cluster import SLOTS_PER_DAY, Cluster
from benchmarks.clusters.history_directory import write_history
from benchmarks.clusters.plain import Trace, build_plain
from benchmarks.clusters.read_history import read_cluster
from benchmarks.clusters.replicated import NodeSizes, build_asd_cluster, build_bitbrains_cluster
from benchmarks.clusters.scenarios import SCENARIOS, Scenario


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.clusters", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    for name, what, seed in (
        ("asd", "1,300 pods of services that peak in the evening, a third shifted (CPU)", 9),
        ("bitbrains", "1,500 pods with CPU, memory, disk and network of real VMs", 1),
    ):
        command = commands.add_parser(name, help=what, description=what)
        command.add_argument("--traces", type=Path, required=True, help="directory of the traces")
        command.add_argument("--out", type=Path, required=True, help="history directory to write")
        command.add_argument("--nodes", choices=[s.value for s in NodeSizes], default="equal", help="mixed = 1 : 2 : 4")
        command.add_argument(
            "--seed", type=int, default=seed, help="default: %(default)s, as in docs/understand/results.md"
        )
        command.add_argument("--scenario", choices=[s.value for s in Scenario], default="none")
    plain = commands.add_parser("plain", help="every entity of a trace a service of one pod, for the backtest")
    plain.add_argument("trace", choices=[t.value for t in Trace])
    plain.add_argument("--traces", type=Path, required=True, help="directory of the traces")
    plain.add_argument("--out", type=Path, required=True, help="history directory to write")
    scenario = commands.add_parser("scenario", help="play a scenario on a built history")
    scenario.add_argument("scenario", choices=[s.value for s in Scenario])
    scenario.add_argument("--history", type=Path, required=True, help="history directory to read")
    scenario.add_argument("--out", type=Path, required=True, help="history directory to write")
    scenario.add_argument("--seed", type=int, default=1)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what was asked for and say what it is."""
    options = parser().parse_args(arguments)
    try:
        cluster = _build(options)
    except (InputError, FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    sizes = f"{len(cluster.services)} services, {len(cluster.pods)} pods, {len(cluster.nodes)} nodes"
    print(f"{options.out}: {sizes}, {cluster.n_slots // SLOTS_PER_DAY} days")
    return 0


def _build(options: argparse.Namespace) -> Cluster:
    if options.command == "plain":
        return build_plain(options.trace, options.traces, options.out)
    if options.command == "scenario":
        cluster = read_cluster(options.history)
    else:
        build = build_asd_cluster if options.command == "asd" else build_bitbrains_cluster
        cluster = build(options.traces, options.out, options.seed, options.nodes)
        if options.scenario == Scenario.NONE.value:
            return cluster
    changed = SCENARIOS[Scenario(options.scenario)](cluster, np.random.default_rng(options.seed))
    write_history(changed, options.out)
    return changed


if __name__ == "__main__":
    sys.exit(main())
