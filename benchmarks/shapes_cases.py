"""Cases made after bug reports: `train` as a command on each, its learned load against the truth.

For benchmarks.shapes.
A case is a folder with make.py, which writes data, truth.json and cluster.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from testing.servers.prometheus import PrometheusServer, promtool_path

_RIGHT = 0.05
_OF_A_POD = {"cpu_cores_of_a_pod": "cpu_cores", "memory_bytes_of_a_pod": "memory_bytes"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case came to. status, said: of `train`, or of the last command. out: where everything was written."""

    status: int
    said: str
    out: Path

    def truth(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "truth.json").read_text())
        return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """word: right, explicit or wrong. error: the largest of the learned load, relative; NaN = nothing was learned."""

    word: str
    error: float
    detail: str


Judge = Callable[[Outcome], Verdict]


def learned(outcome: Outcome) -> Verdict:
    """Services as in the history and peaks of nodes as in the forecast, within 5 % of what the generator put there."""
    if outcome.status:
        return Verdict("wrong", np.nan, f"refused: {outcome.said[-300:]}")
    truth, errors = outcome.truth(), {}
    usage = _whole_days(outcome.out / "history", "usage")
    of_service = usage.groupby(usage["namespace"].astype(str) + "/" + usage["service"].astype(str))
    for service, figures in truth["services"].items():
        for name, column in _OF_A_POD.items():
            mean = of_service[column].mean().get(service, np.nan)
            errors[f"{column} of {service}"] = abs(mean / figures[name] - 1)
    peaks = _peaks(outcome)
    for node, figures in truth["nodes"].items():
        expected = figures["cpu_cores_highest_half_hour"]
        errors[f"peak of {node}"] = abs(peaks.get(node, np.nan) / expected - 1)
    strange = sorted(set(peaks) - set(truth["nodes"]))
    worst = max(errors, key=lambda one: errors[one] if np.isfinite(errors[one]) else np.inf)
    good = errors[worst] <= _RIGHT and not strange
    return Verdict("right" if good else "wrong", errors[worst], f"{worst}{f'; nodes {strange}' if strange else ''}")


def refused(*texts: str) -> Judge:
    """Status 2 and a sentence with one of these texts."""

    def judge(outcome: Outcome) -> Verdict:
        said = outcome.status == 2 and any(text in outcome.said for text in texts)
        return Verdict("explicit" if said else "wrong", np.nan, outcome.said.strip().splitlines()[-1][:160])

    return judge


def requests_of_sidecars(outcome: Outcome) -> Verdict:
    """A pod asks for 0.7 cores and 800 MB: its container and its native sidecar."""
    pods = _whole_days(outcome.out / "history", "pods")
    errors = [abs(pods["request_cpu_cores"].median() / 0.7 - 1), abs(pods["request_memory_bytes"].median() / 8e8 - 1)]
    return Verdict("right" if max(errors) <= _RIGHT else "wrong", max(errors), "requests of a pod")


def read_without_error(outcome: Outcome) -> Verdict:
    """Every file is read (status 0)."""
    return Verdict("wrong" if outcome.status else "right", np.nan, outcome.said.strip()[-160:])


RULES: Mapping[str, tuple[str, Judge]] = {
    "01": ("services and node peaks within 5 %", learned),
    "02": ("services and node peaks within 5 %", learned),
    "04": ("refused, honorLabels", refused("honorLabels")),
    "05": ("refused, the label cluster", refused("label cluster", "prometheus.cluster")),
    "07": ("requests with sidecars within 5 %", requests_of_sidecars),
    "08": ("services and node peaks within 5 %", learned),
    "10": ("every file is read", read_without_error),
    "12": ("every file is read", read_without_error),
    "16": ("services and node peaks within 5 %, six nodes", learned),
    "18": ("services and node peaks within 5 %", learned),
}
"""By the number of the case: what is right in words, and the rule. 13 is a history: nothing of it is read here."""


def run_case(folder: Path, out: Path) -> Outcome:
    """Make a case, train on it, and return what came of it."""
    environment = {**os.environ, "PROMTOOL": str(promtool_path())}
    subprocess.run([sys.executable, folder / "make.py", out], check=True, env=environment, stdout=subprocess.DEVNULL)
    if (out / "pod.yaml").exists():
        return _explained(out)
    config, history, models = out / "settings.yaml", out / "history", out / "models"
    config.write_text("prometheus: {disk_capacity: 1e9}\n")  # else a node's peak may be one of disk
    with PrometheusServer(out) as server:
        arguments: list[str | Path] = ["--config", config, "--prometheus", server.url, "--force"]
        arguments += ["--history", history, "--models", models]
        done = _command("train", *arguments, *(("--days", "20") if folder.name.startswith("07") else ()))
    return Outcome(done.returncode, done.stdout + done.stderr, out)


def _explained(out: Path) -> Outcome:
    """Read every cluster file of a case by `explain`; the first that is refused ends it."""
    said = ""
    # Files, and a folder as `kubectl cluster-info dump` writes it.
    for file in sorted(one for one in out.iterdir() if one.suffix in (".json", ".jsonl") or one.is_dir()):
        done = _command("explain", out / "pod.yaml", "--cluster", file)
        said = f"{file.name}: {(done.stdout + done.stderr).strip()[-140:]}"
        if done.returncode:
            return Outcome(done.returncode, said, out)
    return Outcome(0, said, out)


def _command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "forecast_scheduler", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _whole_days(history: Path, table: str) -> pd.DataFrame:
    """All days but the last, which is not over."""
    files = sorted((history / f"{table}.parquet").glob("*.parquet"))
    return pd.concat([pd.read_parquet(file) for file in files[:-1] or files])


def _peaks(outcome: Outcome) -> dict[str, float]:
    """Highest expected CPU of each node today, in cores."""
    out = outcome.out
    arguments: list[str | Path] = [
        "--cluster",
        out / "cluster.json",
        "--models",
        out / "models",
        "--top",
        "100",
        "--json",
        out / "n.json",
    ]
    if (done := _command("nodes", *arguments)).returncode:
        raise RuntimeError(f"nodes ended with {done.returncode}: {done.stderr[-500:]}")
    nodes = json.loads((out / "n.json").read_text())["nodes"]
    return {one["name"]: one["peak"]["expected"] for one in nodes if one["peak"] and one["peak"]["resource"] == "cpu"}
