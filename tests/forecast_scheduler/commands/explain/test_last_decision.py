"""`explain --last`: the decision log answers why a pod got its node."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from forecast_scheduler.cli import run
from placement.decisions.decision import Decision
from tests.placement.decisions.made_up import AT, decision


def written(path: Path, *decisions: Decision) -> Path:
    path.write_text("".join(json.dumps(one.to_json()) + "\n" for one in decisions))
    return path


def with_log(log: Path, *, folder: Path) -> str:
    """Return the path of settings, in the folder, of loops that write this log."""
    settings = folder / "settings.yaml"
    settings.write_text(json.dumps({"schedule": {"decisions": {"log": str(log)}}}))
    return str(settings)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    first = decision({"n1": 6, "n7": 3, "n2": 1}, "n2", at=AT, uid="first")
    again = decision({"n1": 4, "n7": 9}, "n7", at=AT + 60, uid="second", is_shadow=True)
    return written(tmp_path / "log.jsonl", again, first, decision({"n1": 1}, "n1", pod="shop/other-1", uid="other"))


def test_the_latest_decision_about_a_pod_of_this_name(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "shop/cart-1", "--last", "--decisions", str(log), "--json", str(log.parent / "out")]) == 0
    text = capfd.readouterr().out
    assert "shop/cart-1 (shop/Deployment/cart): node n7 of 2: expected peak 61 % of cpu at 22:00, upper" in text
    assert "the advice was not given" in text and "degradation level: fresh" in text
    assert "decided 2026-09-21 14:13:20 UTC in 2.1 ms, seen bound 60 s later" in text
    assert "the first day of the model had begun 2 h before" in text
    row = next(line for line in text.splitlines() if "advised, bound" in line)
    assert "n7" in row and "9" in row
    assert json.loads((log.parent / "out").read_text())["uid"] == "second"


def test_the_log_of_a_component_may_be_piped_in(
    log: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Piped:
        buffer = io.BytesIO(b"INFO something else\n" + log.read_bytes())

    monkeypatch.setattr("sys.stdin", Piped)
    assert run(["explain", "shop/other-1", "--last", "--decisions", "-"]) == 0
    assert "shop/other-1" in capfd.readouterr().out


def test_logs_are_those_of_the_settings_with_rotated_files_or_missing_ones_named(
    log: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    now = log.with_name("log[a].jsonl")  # no pattern
    log.rename(now.with_name("log[a].jsonl.1"))
    written(now, decision({"n5": 1}, "n5", pod="shop/third-1", uid="third"))
    for other in ("log[a].jsonl.bak", "log[a].jsonl-2", "loga.jsonl.1"):
        (log.parent / other).write_bytes(b"\x1f\x8bno log at all")
    settings = with_log(now, folder=log.parent)
    for name in ("cart-1", "third-1"):
        assert run(["explain", f"shop/{name}", "--last", "--config", settings]) == 0
    assert "node n5" in capfd.readouterr().out
    missing = tmp_path / "no" / "log.jsonl"
    assert run(["explain", "shop/cart-1", "--last", "--config", with_log(missing, folder=tmp_path)]) == 2
    assert f"there is no file {missing}: pass --decisions FILE" in "".join(capfd.readouterr().err.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["shop/gone", "--last", "--decisions", "LOG"],
            "none about shop/gone: name the log of the component",
        ),
        (["shop/cart-1", "--last"], "the settings name no decision log in a file: pass --decisions FILE"),
        (["shop/cart-1", "--last", "--decisions", "no-such-file"], "cannot be read"),
        (["shop/cart-1", "--decisions", "LOG"], "add --last"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], message: str, log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *(str(log) if one == "LOG" else one for one in arguments)]) == 2
    assert message in capfd.readouterr().err
