"""Settings are found by words, also by other words than their names have."""

from __future__ import annotations

import json

import pytest

from forecast_scheduler.cli import run


def test_settings_are_found_by_words_also_by_others_than_their_names_have(capsys: pytest.CaptureFixture[str]) -> None:
    def found(*words: str) -> list[str]:
        assert run(["settings", *words, "--output", "json"]) == 0
        return [one["key"] for one in json.loads(capsys.readouterr().out)["settings"]]

    assert found("HOT", "Share")[0] == "hot_share" == found("threshold")[0]
    assert "leader_election.duration" in found("lease")
    assert {"serving.tls_cert", "serving.client_ca"} <= set(found("tls"))
    assert "serving.token_files" in found("auth")
    assert found("extender", "port") == found("list", "extender", "port") == ["extender.serving"]
    assert found("changes", "at", "night")[0] == "change_windows"
    assert found("never", "move")[:2] == ["excluded.namespaces", "excluded.services"]
    assert "rebalance.mode" in found("rebalance", "off")
    assert "scorer.report" not in found("port")
    assert found("FORECAST_SCHEDULER_HOT_SHARE")[0] == "hot_share"
    assert found("scorer.serving.port") == ["scorer.serving"]
    assert len(found()) > len(found("serving")) > 0
    assert run(["settings", "kubernetes_audiences"]) == 0
    assert "none" in capsys.readouterr().out
    assert run(["settings", "no-such-word"]) == 2
    assert "no setting matches 'no-such-word'" in capsys.readouterr().err
    for former in ("FORECAST_SCHEDULER_SCORER__PORT", "scorer.port"):
        assert run(["settings", former]) == 2
        assert "`scorer.port` is `scorer.serving.port` now" in capsys.readouterr().err
