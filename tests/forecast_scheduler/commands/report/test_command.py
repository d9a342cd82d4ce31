"""The command `report`: on a made-up history whose answer is known by hand, and on the sample against a slow loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from forecast_scheduler.cli import run
from placement.decisions.decision import Decision
from tests.forecast_scheduler.small_history import COLUMNS, LEVELS, Tables
from tests.placement.decisions.made_up import decision

START = pd.Timestamp("2026-10-05", tz="UTC")
N_SLOTS = 3 * 48
RELEASE = START + pd.Timedelta("28h")  # 04:00 on the second day
CORES = {"n0": 16.0, "n1": 16.0, "n2": 32.0}
HOT = np.isin(np.arange(N_SLOTS) % 48, range(40, 44))  # 20:00 to 22:00


def made_up_tables() -> Tables:
    """Every node uses one core beside its pods. From the release on n0 has cart-a with 4 cores, and cart-b with 8 in
    the evening: 13 of 16 cores are 81 %. n1 has mail-0 with half a core throughout.
    """
    since = np.arange(N_SLOTS) >= 28 * 2
    always = np.ones(N_SLOTS)
    cpu = {
        "cart-a": (since, 4.0 * always, "n0"),
        "cart-b": (since, 8.0 * HOT, "n0"),
        "mail-0": (always > 0, 0.5 * always, "n1"),
    }
    times = pd.date_range(START, periods=N_SLOTS, freq="30min")
    total = {node: np.ones(N_SLOTS) for node in CORES}
    rows = []
    for pod, (there, usage, node) in cpu.items():
        total[node] += np.where(there, usage, 0.0)
        frame = pd.DataFrame({"timestamp": times, "cpu_cores": usage, "memory_bytes": 2.0**30})[there]
        service = f"Deployment/{pod.partition('-')[0]}"
        rows.append(frame.assign(namespace="shop", service=service, pod=pod, node=node))
    nodes = [pd.DataFrame({"timestamp": times, "cpu_cores": total[node], "node": node}) for node in CORES]
    requests = [("shop", f"Deployment/{pod.partition('-')[0]}", pod, 0.5, 2.0**30) for pod in cpu]
    size = [(node, *(cores * level for level in LEVELS)) for node, cores in CORES.items()]
    return Tables(
        usage=pd.concat(rows, ignore_index=True),
        pods=pd.DataFrame(
            requests, columns=["namespace", "service", "pod", "request_cpu_cores", "request_memory_bytes"]
        ),
        nodes=pd.concat(nodes, ignore_index=True),
        capacity=pd.DataFrame(size, columns=["node", *COLUMNS]),
    )


def decided(
    pod: str, node: str, advised: str, at: pd.Timestamp = RELEASE, *, namespace: str = "shop", **changes: Any
) -> Decision:
    points = dict.fromkeys([*CORES, node], 1) | {advised: 4}
    facts: dict[str, Any] = {"pod": f"{namespace}/{pod}", "uid": f"uid-{pod}", "is_shadow": True} | changes
    return decision(points, node, at=at.timestamp(), **facts)


DECISIONS = (
    decided("cart-a", "n0", "n2"),
    decided("cart-b", "n0", "n1"),
    decided("cart-c", "n0", "n1", level="old_model"),
    decided("mail-0", "n1", "n1", level="old_model", is_late=True),
)


def write_log(path: Path, *decisions: Decision) -> str:
    path.write_text("".join(json.dumps(one.to_json()) + "\n" for one in decisions))
    return str(path)


@pytest.fixture
def history(tmp_path: Path) -> str:
    return str(made_up_tables().write(tmp_path / "history"))


def test_the_answer_known_by_hand(history: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs = [write_log(tmp_path / "log.1", *DECISIONS[:2]), write_log(tmp_path / "log", *DECISIONS[2:])]
    with (tmp_path / "log").open("a") as torn:
        torn.write('{"time": "2026-')
    figures_file, page = tmp_path / "report.json", tmp_path / "report.html"
    command = ["report", "--history", history, "--json", str(figures_file), "--html", str(page), "--decisions", *logs]
    assert run(command) == 0
    said = capfd.readouterr()
    assert "note: 1 lines that cannot be read were left out" in said.err
    figures = json.loads(figures_file.read_text())

    decisions = figures["decisions"]
    assert decisions["shadow"] == 4
    assert decisions["all"] == {"decisions": 4, "as_advised": 1, "as_good": 1, "agreement": 0.25, "late": 1}
    assert decisions["by_level"]["fresh"]["agreement"] == 0
    assert decisions["by_level"]["old_model"]["agreement"] == 0.5

    placements = figures["placements"]
    assert (placements["days"], placements["n_days"]) == (["2026-10-06", "2026-10-07"], 2)
    pods = {name: count for name, count in placements["pods"].items() if count}
    assert pods == {"moved": 2, "not_found": 1, "late": 1}
    # Two evenings of four half hours on one of three nodes.
    assert placements["real"]["hot_share"] == pytest.approx(8 / (3 * 96))
    assert placements["shadow"]["hot_share"] == 0
    # n0: 1 + 4 + 8 of 16, n1: 1 + 0.5 of 16, n2: 1 of 32; in the shadow 1, 1 + 0.5 + 8 and 1 + 4.
    for name, peaks in (("real", [13 / 16, 1.5 / 16, 1 / 32]), ("shadow", [1 / 16, 9.5 / 16, 5 / 32])):
        assert placements[name]["max_peak"]["cpu"] == pytest.approx(max(peaks))
        assert placements[name]["peak_cv"]["cpu"] == pytest.approx(np.std(peaks) / np.mean(peaks), rel=1e-6)
    moved = 4 * 88 + 8 * 8
    assert placements["moved_cpu_share"] == pytest.approx(moved / (moved + 3 * 96 + 0.5 * 96))

    for text in ("4 decisions (shadow)", "81 %", "59 %", "2.78 %", "0.00 %", "2 pods moved to the node advised"):
        assert text in said.out
    html = page.read_text()
    assert (
        "2.78 %" in html
        and "Wed 07 Oct" in html
        and "old_model" in html
        and "http" not in html.replace("http-equiv", "")
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no history named"),
        (["--history", "{tmp}/missing"], "does not exist"),
        (["--history", "{history}", "--html", "{tmp}/missing/page.html"], "there is no directory"),
        (["--history", "{history}", "{tmp}/nothing.log"], "cannot be read (No such file or directory)"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    arguments: list[str], sentence: str, history: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "log", *DECISIONS)
    filled = [argument.format(tmp=tmp_path, history=history) for argument in arguments]
    assert run(["report", "--decisions", log, *filled]) == 2
    said = capfd.readouterr().err
    assert sentence in said and said.count("\n") == 1
