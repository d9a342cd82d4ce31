"""The real descheduler on a ControlPlane, one round at a time: LowNodeUtilization by what a Prometheus measures.

descheduler = Descheduler(plane, prometheus.url, query, directory)
descheduler.round()         # returns what it evicted, and what budgets refused
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.program_cache import program_of

_EVICTED: Final = re.compile(r'"Evicted pod" pod="([^"]+)"')
_REFUSED: Final = re.compile(r'"Error evicting pod" .*disruption budget')
_ROUND_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class Round:
    """evicted: namespace/name; refused: evictions that a disruption budget did not allow; log: of the process."""

    evicted: tuple[str, ...]
    refused: int
    log: str


class Descheduler:
    """
    query  : of a vector with a share of 0 to 1 for each node, by the label `instance`
    under, over : percent below which a node takes pods, and above which it loses some
    """

    def __init__(
        self, plane: ControlPlane, prometheus_url: str, query: str, directory: Path, *, under: int = 50, over: int = 80
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._plane, self._policy = plane, directory / "policy.json"
        policy = _policy(prometheus_url, query, under, over)
        self._policy.write_text(json.dumps(policy))  # JSON is YAML, too
        self._environment = os.environ | {"PROMETHEUS_URL": prometheus_url}

    def round(self) -> Round:
        """Let it look once, evict, and end. Raises RuntimeError if it did not get to look."""
        done = subprocess.run(
            [
                descheduler(),
                f"--kubeconfig={self._plane.kubeconfig}",
                f"--policy-config-file={self._policy}",
                "--descheduling-interval=0",
                "--leader-elect=false",
                "--secure-port=0",
                "--disable-metrics",
                "--v=3",
            ],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=_ROUND_SECONDS,
            check=False,
        )
        log = done.stdout + done.stderr
        if done.returncode or "Number of evictions/requests" not in log or "error getting node usage" in log:
            raise RuntimeError(f"the descheduler ended with {done.returncode}: {log[-3000:]}")
        return Round(tuple(_EVICTED.findall(log)), len(_REFUSED.findall(log)), log)


def _policy(url: str, query: str, under: int, over: int) -> dict[str, Any]:
    arguments = {
        "thresholds": {"MetricResource": under},
        "targetThresholds": {"MetricResource": over},
        "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": query}},
    }
    profile = {
        "name": "low-node-utilization",
        "pluginConfig": [
            {"name": "DefaultEvictor", "args": {}},
            {"name": "LowNodeUtilization", "args": arguments},
        ],
        "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}},
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [{"source": "Prometheus", "prometheus": {"url": url}}],
        "profiles": [profile],
    }


def descheduler() -> Path:
    """The program: from PATH, our cache, or built from go/go.mod, which pins its version."""
    otherwise = "put descheduler on PATH (https://github.com/kubernetes-sigs/descheduler/releases)"
    return program_of(Path(__file__).with_name("go"), "descheduler", ".", otherwise=otherwise)
