"""What a service that claims a multiple of its usage does to nodes: their base, and their score for others' pods.

    python -m benchmarks.poisoned_usage [--code-before PATH]

The bundled sample with the claims of one service multiplied on all days, trained as `train` does and served at 17:00 of
the last day, with what nodes measure of themselves left as it is. Each line is the node whose base the claims move
most: base (highest half hour, share of the capacity) and score for a pod of another service, from honest claims and
from false ones. --code-before does the same by the code of another checkout. "moved": most that any score moved.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks.harness import command_line
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES
from forecast_scheduler.commands.demo.evening_scorer import cluster_at
from forecast_scheduler.commands.model_registry import open_registry
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, open_scorer
from forecast_scheduler.settings.document import Settings
from scorer.service.app import create_app
from testing.app_client import AppClient
from trainer.history.files import HistoryFiles
from trainer.nightly import train_and_publish

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLE: Final = ROOT / "data" / "sample"
_FOR: Final = "login-"
_HOUR: Final = 17
_READY_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Case:
    """A service and what its claims are multiplied by; unknown: resources without a configured capacity."""

    service: str
    factors: Mapping[int, float]
    unknown: tuple[int, ...] = ()


CASES: Final[Mapping[str, Case]] = {
    "memory x 30": Case("Deployment/api-gateway", {MEMORY: 30.0}),
    "all x 30": Case("Deployment/cart", dict.fromkeys((CPU, MEMORY, DISK, NETWORK, LOG), 30.0)),
    "disk, log x 1e6": Case("Deployment/promotions", {DISK: 1e6, LOG: 1e6}, unknown=(DISK, LOG)),
}


@dataclass(slots=True)
class Outcome:
    """base: resource -> node -> share of the real capacity; scores: node -> 0..100; cut: series named by the run."""

    base: dict[str, dict[str, float]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    cut: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each case and resource."""
    parser = command_line(__doc__)
    parser.add_argument("--code-before", type=Path, help="checkout whose code is measured too")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        case, honest = options.child
        outcome = _measure(CASES[case], honest=honest == "honest")
        print(json.dumps({"base": outcome.base, "scores": outcome.scores, "cut": outcome.cut}))
        return 0
    before = options.code_before
    print(f"{'claims':16} {'resource':8} {'node':10} {'base: honest':>12} {'before':>7} {'now':>7}  ", end="")
    print(f"{'score: honest':>13} {'before':>7} {'now':>6}   {'moved: before':>13} {'now':>5} {'series cut':>11}")
    for name, case in CASES.items():
        honest, now = _by(ROOT, name, "honest"), _by(ROOT, name, "false")
        _print(name, case, honest, None if before is None else _by(before, name, "false"), now)
    return 0


def _by(code: Path, case: str, claims: str) -> Outcome:
    """What the code of a checkout makes of a case, in a process of its own."""
    command = [sys.executable, __file__, "--child", case, claims]
    found = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(code)}, cwd=code, check=True, stdout=subprocess.PIPE, text=True
    )
    return Outcome(**json.loads(found.stdout.splitlines()[-1]))


def _print(name: str, case: Case, honest: Outcome, before: Outcome | None, now: Outcome) -> None:
    worst = before or now
    for r in case.factors:
        resource = RESOURCES[r].name
        node = max(honest.base[resource], key=lambda n: worst.base[resource][n] - honest.base[resource][n])
        base = [f"{one.base[resource][node]:.1%}" if one else "-" for one in (honest, before, now)]
        score = [f"{one.scores[node]:.1f}" if one else "-" for one in (honest, before, now)]
        moved = [
            f"{max(abs(one.scores[n] - honest.scores[n]) for n in honest.scores):.1f}" if one else "-"
            for one in (before, now)
        ]
        print(f"{name:16} {resource:8} {node:10} {base[0]:>12} {base[1]:>7} {base[2]:>7}  ", end="")
        print(f"{score[0]:>13} {score[1]:>7} {score[2]:>6}   {moved[0]:>13} {moved[1]:>5} {now.cut:>11,}", flush=True)


def _measure(case: Case, *, honest: bool) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="poisoned-usage-") as scratch:
        clean = _written(Path(scratch) / "honest", case, honest=True)
        files = HistoryFiles.open(clean if honest else _written(Path(scratch) / "false", case, honest=False))
        history = files.history()
        at_night = history.calendar.midnight(history.days[-1]) + timedelta(hours=3)
        models = str(Path(scratch) / "models")
        known = history.before(history.n_days - 1)
        model = train_and_publish(known, open_registry(Settings().models, models), now=at_night).model
        share = model.node_base.max(axis=(2, 3)) / HistoryFiles.open(SAMPLE).nodes.capacity
        base = {r.name: dict(zip(model.nodes, share[:, i].tolist(), strict=True)) for i, r in enumerate(RESOURCES)}
        return Outcome(base, _scores(clean, models, Path(scratch)), len(getattr(files, "cut", ())))


def _written(out: Path, case: Case, *, honest: bool) -> Path:
    """The sample without the capacities of `case.unknown`; honest: with the claims as they are."""
    shutil.copytree(SAMPLE, out)
    capacity = pd.read_parquet(out / "capacity.parquet")
    capacity[[RESOURCES[r].column for r in case.unknown]] = np.nan
    capacity.to_parquet(out / "capacity.parquet", index=False)
    if not honest:
        usage = pd.read_parquet(out / "usage.parquet")
        mine = usage["service"].astype(str) == case.service
        for r, factor in case.factors.items():
            column = RESOURCES[r].column
            usage.loc[mine, column] = (usage.loc[mine, column].astype(np.float64) * factor).astype(np.float32)
        usage.to_parquet(out / "usage.parquet", index=False)
    return out


def _scores(directory: Path, models: str, scratch: Path) -> dict[str, float]:
    """Each node's score for a pod of `_FOR`, on the evening of the last day."""
    files = HistoryFiles.open(directory)
    history = files.history()
    day = history.days[-1]
    moment = history.calendar.at(day, _HOUR).astimezone(history.calendar.zone)
    document = cluster_at(history, files.pod_usage(day, day), moment)
    (scratch / "cluster.json").write_text(json.dumps(document), encoding="utf-8")
    items: list[dict[str, Any]] = document["items"]
    pod = next(
        item["metadata"] for item in items if item["kind"] == "Pod" and item["metadata"]["name"].startswith(_FOR)
    )
    inputs = Inputs(cluster=scratch / "cluster.json", models=models, history=directory, at=moment)
    with (
        open_scorer(Settings(), inputs) as (scorer, background),
        background,
        AppClient(create_app(scorer, hot=HOT_SHARE)) as asked,
    ):
        deadline = time.monotonic() + _READY_SECONDS
        while asked.get("/readyz").status_code != 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        answer = asked.post("/v1/scores", json={"pod": {"namespace": pod["namespace"], "name": pod["name"]}})
        found: dict[str, float] = answer.json()["scores"]
        return found


if __name__ == "__main__":
    sys.exit(main())
