"""Groups that several commands share: what they set holds for each command that does not set it itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from base.errors import InputError
from forecast_scheduler.settings.document import SHARED, Settings, load_settings, with_options

SERVICES = ["scorer", "extender", "advise", "rebalance", "autoscale", "schedule", "webhook"]


def serving_of(settings: Settings, command: str) -> Any:
    return getattr(settings, command).serving


def test_commands_follow_what_the_shared_group_sets_and_keep_what_they_set_themselves() -> None:
    shared = {"host": "0.0.0.0", "drain": "5s", "kubernetes_auth": True}
    settings = Settings.model_validate({"serving": shared, "extender": {"serving": {"drain": 1, "tls_cert": "a.pem"}}})
    for command in SERVICES:
        own = serving_of(settings, command)
        assert (own.host, own.kubernetes_auth) == ("0.0.0.0", True)
        assert own.drain == (1 if command == "extender" else 5)
    assert settings.extender.serving.tls_cert == Path("a.pem") and settings.scorer.serving.tls_cert is None


def test_a_command_keeps_its_own_default_unless_the_shared_group_says_otherwise() -> None:
    quiet, loud = Settings(), Settings.model_validate({"serving": {"port": 9000, "anonymous": False}})
    ports = [serving_of(quiet, command).port for command in SERVICES]
    assert ports == [8080, 8888, 8890, 8891, 8892, 8889, 8443]
    assert quiet.webhook.serving.anonymous and not quiet.scorer.serving.anonymous
    assert [serving_of(loud, command).port for command in SERVICES] == [9000] * 7
    assert not loud.webhook.serving.anonymous


def test_the_second_port_of_the_autoscaler_takes_no_port_and_no_clients_from_the_shared_group() -> None:
    shared = {"host": "::", "port": 9000, "probe_port": 9001, "tls_cert": "a.pem", "client_ca": "b.pem"}
    settings = Settings.model_validate({"serving": shared | {"token_files": ["t"]}})
    own = settings.autoscale.external_metrics.serving
    assert (own.host, own.tls_cert) == ("::", Path("a.pem"))
    assert (own.port, own.probe_port, own.client_ca) == (6443, None, None)


def test_replicas_of_all_commands_elect_their_leader_alike_but_for_the_times_of_advisors() -> None:
    shared = {"namespace": "ops", "duration": 20, "renew_deadline": 15}
    own = {"schedule": {"leader_election": {"name": "evening"}}}
    settings = Settings.model_validate({"leader_election": shared, **own})
    found = [one.leader_election for one in (settings.schedule, settings.rebalance, settings.autoscale)]
    assert {(one.namespace, one.duration) for one in found} == {("ops", 20)}
    names = [one.name for one in found]
    assert names == ["evening", "forecast-scheduler-rebalancer", "forecast-scheduler-autoscaler"]
    advisors = settings.advise.leader_election
    assert (advisors.namespace, advisors.duration, advisors.renew_deadline) == ("ops", 4, 3)


def test_decisions_tenants_and_the_cluster_are_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    document: dict[str, Any] = {
        "decisions": {"log": "-", "keep": 2},
        "tenants": {"pool": "nodes", "grace": "1m"},
        "kubernetes": {"kubeconfig": "~/config"},
        "advise": {"decisions": {"keep": 3}, "tenants": {"fair": False}},
    }
    settings = Settings.model_validate(document)
    logs = [settings.extender.decisions, settings.schedule.decisions, settings.advise.decisions]
    assert [(one.log, one.keep) for one in logs] == [("-", 2), ("-", 2), ("-", 3)]
    tenants = [settings.schedule.tenants, settings.advise.tenants]
    assert [(one.pool.value, one.grace, one.fair) for one in tenants] == [("nodes", 60, True), ("nodes", 60, False)]
    assert settings.kubernetes.kubeconfig == Path("/home/somebody/config")


def test_options_and_the_environment_win_over_the_shared_group(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("serving: {port: 9000}\n")
    environment = {"FORECAST_SCHEDULER_SCORER__SERVING__PORT": "9001", "FORECAST_SCHEDULER_SERVING__DRAIN": "3s"}
    settings = load_settings(tmp_path / "settings.yaml", environment)
    assert (settings.scorer.serving.port, settings.extender.serving.port) == (9001, 9000)
    assert settings.extender.serving.drain == 3
    given = {"scorer": {"serving": {"port": 9002, "host": None}}}
    changed = with_options(settings, given).scorer.serving
    assert (changed.port, changed.host, changed.drain) == (9002, "127.0.0.1", 3)


def test_what_a_command_has_in_the_file_wins_over_the_shared_group_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("scorer: {serving: {probe_port: 9000}}\n")
    settings = load_settings(tmp_path / "settings.yaml", {"FORECAST_SCHEDULER_SERVING__PROBE_PORT": "8081"})
    assert (settings.scorer.serving.probe_port, settings.extender.serving.probe_port) == (9000, 8081)


def test_a_mistake_in_a_shared_group_is_named_there(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("serving: {prot: 9000}\n")
    with pytest.raises(InputError, match=r"unknown key 'serving.prot': did you mean 'serving.port'"):
        load_settings(tmp_path / "settings.yaml", {})
    (tmp_path / "settings.yaml").write_text("serving: {port: many}\n")
    with pytest.raises(InputError, match=r"sets 'serving.port' to 'many'"):
        load_settings(tmp_path / "settings.yaml", {})


def test_every_group_that_has_the_name_of_a_shared_one_follows_it() -> None:
    def named(values: Any, path: str) -> list[str]:
        found = []
        for key, inner in values.items() if isinstance(values, dict) else ():
            below = f"{path}.{key}" if path else key
            found += [below] * (key in SHARED and bool(path)) + named(inner, below)
        return found

    followers = {one for group in SHARED.values() for one in group}
    assert set(named(Settings().model_dump(), "")) == followers


def test_the_shipped_document_is_of_this_version() -> None:
    shipped = Path(__file__).parents[3] / "deploy" / "base" / "common" / "settings.yaml"
    settings = load_settings(shipped, {})
    assert "serving" in yaml.safe_load(shipped.read_text())
    for command in SERVICES:
        asks = serving_of(settings, command).kubernetes_auth
        assert asks == (command not in ("extender", "webhook"))
    assert settings.extender.serving.client_ca is not None and settings.webhook.serving.anonymous
