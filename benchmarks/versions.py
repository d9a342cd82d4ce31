"""Each part on each version of Kubernetes that can be built here: journeys of the tests on real servers, one table.

    python -m benchmarks.versions [--versions 1.36 1.38] [--parts webhook advisor]

A cell is what pytest said: how many passed, how many were skipped because the version does not serve the API, and
which failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from testing.servers.control_plane.binaries import VERSIONS

JOURNEYS: Final[Mapping[str, Sequence[str]]] = {
    "webhook: templates and gates written into new pods": ("tests/processes/test_webhook.py",),
    "advisor: advice nominated, and followed by kube-scheduler": ("tests/advise/test_advice.py",),
    "extender: asked by kube-scheduler": ("tests/extender/real/test_protocol.py",),
    "own loops: pods bound beside kube-scheduler": ("tests/schedule/test_beside_kube_scheduler.py",),
    "rebalancer: evictions within budgets": ("tests/rebalance/test_execution.py::test_a_budget_decides",),
    "rebalancer: EvictionRequests": ("tests/rebalance/test_eviction_requests.py",),
    "native PodGroups": ("tests/schedule/test_native_gangs.py",),
    "same filters as kube-scheduler": ("tests/differential/test_filters.py", "tests/differential/test_named_cases.py"),
    "same scores as kube-scheduler": ("tests/differential/test_scores.py",),
    "same victims as kube-scheduler": ("tests/differential/test_preemption.py",),
}
"""By what they show; the long tests of a file run only if it has no others."""

_ALWAYS_LONG: Final = ("EvictionRequests",)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all, a line per journey."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs="+", default=VERSIONS, choices=VERSIONS)
    parser.add_argument("--parts", nargs="+", default=[""], help="words of the journeys to run")
    chosen = parser.parse_args(arguments)
    print("| journey |", " | ".join(chosen.versions), "|", flush=True)
    print("|---|" + "---|" * len(chosen.versions), flush=True)
    for name, files in JOURNEYS.items():
        if any(word in name for word in chosen.parts):
            cells = [_said(version, name, files) for version in chosen.versions]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _said(version: str, name: str, files: Sequence[str]) -> str:
    marked = [] if any(word in name for word in _ALWAYS_LONG) else ["-m", "not long"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--quiet", "-n0", "--no-header", *marked, *files],
        env=os.environ | {"KUBERNETES_VERSION": version},
        capture_output=True,
        text=True,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) \S*::(\w+)", done.stdout, re.MULTILINE)
    counts = re.findall(r"(\d+ (?:passed|skipped))", done.stdout.splitlines()[-1] if done.stdout else "")
    return ", ".join([*(f"FAILED {one}" for one in failed), *counts]) or f"exit {done.returncode}"


if __name__ == "__main__":
    main()
