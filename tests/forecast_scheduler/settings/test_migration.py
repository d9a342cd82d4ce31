"""Documents of earlier versions are refused with one error, and rewritten so that every setting keeps its value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from forecast_scheduler.cli import run
from forecast_scheduler.settings.document import SHARED, Settings, load_settings, settings_of
from forecast_scheduler.settings.former_keys import FORMER, REMOVED
from forecast_scheduler.settings.migration import migrated

SERVING: Final[dict[str, Any]] = {
    "host": "0.0.0.0",
    "port": 9000,
    "probe_port": 9001,
    "tls_cert": "/tls/a.crt",
    "tls_key": "/tls/a.key",
    "client_ca": "/tls/ca.crt",
    "client_names": ["proxy"],
    "drain": "5s",
    "token_files": ["/tokens"],
    "kubernetes_auth": True,
    "kubernetes_audiences": ["ours"],
    "anonymous": True,
    "metrics_open": True,
    "allowed_hosts": ["forecast.example.com"],
    "max_body_bytes": 1_000_000,
    "max_concurrent": 10,
}
FIXED: Final = {"shutdown": "20s", "header_timeout": 5, "unread_timeout": 30, "connections": 100, "reload_every": "9s"}
SERVICES: Final = ("scorer", "extender", "advise", "rebalance", "autoscale", "schedule", "webhook")
SERVER: Final = ("host", "port", "probe_port", "tls_cert", "tls_key", "client_ca", "client_names", "drain")
LEASE: Final = {
    "enabled": False,
    "namespace": "ops",
    "name": "mine",
    "duration": 20,
    "renew_deadline": 15,
    "retry_period": 3,
}
DECISIONS: Final = {"log": "-", "max_bytes": 1, "keep": 2, "events": False, "events_per_second": 1}
TENANTS: Final = {
    "enabled": False,
    "pool": "nodes",
    "by_forecast": False,
    "longest_loan": "1h",
    "grace": "1m",
    "reclaim": False,
    "fair": False,
}


def full_document() -> dict[str, Any]:
    """Every key of an earlier version that became one of a shared group; commands differ in some."""
    document: dict[str, Any] = {command: SERVING | FIXED | {"port": 9000 + n} for n, command in enumerate(SERVICES)}
    document["autoscale"]["external_metrics"] = {key: SERVING[key] for key in SERVER} | FIXED | {"drain": "7s"}
    for command in ("schedule", "advise", "rebalance", "autoscale"):
        document[command]["lease"] = LEASE | {"name": f"lease-of-{command}"}
    for command in ("extender", "schedule", "advise"):
        document[command]["decisions"] = DECISIONS | {"keep": 3 if command == "advise" else 2}
    for command in ("schedule", "advise"):
        document[command]["tenants"] = dict(TENANTS)
    document["webhook"] |= {"anonymous": False, "drain": "1s"}
    document["scorer"]["kubeconfig"] = document["webhook"]["kubeconfig"] = "/kube/config"
    return document


def leaves(values: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def meant(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Where the value of a key of an earlier version is read now; None = it is a constant."""
    if ".".join(path) in REMOVED:
        return None
    for n in range(len(path), 0, -1):
        if new := FORMER.get(".".join(path[:n])):
            return (*new.split("."), *path[n:])
    return path


def at(settings: Settings, path: tuple[str, ...]) -> Any:
    found: Any = settings
    for key in path:
        found = getattr(found, key)
    return found


def test_a_full_document_is_refused_once_and_migrated_it_loads_to_the_same_values(tmp_path: Path) -> None:
    old, document = tmp_path / "old.yaml", full_document()
    old.write_text(yaml.safe_dump(document))
    with pytest.raises(InputError) as refused:
        load_settings(old, {})
    said = str(refused.value)
    for former in ("scorer.host", "webhook.header_timeout", "autoscale.external_metrics.tls_key", "advise.lease"):
        assert f"`{former}`" in said
    assert said.endswith(f"run `forecast-scheduler settings migrate {old}`")

    new = migrated(document)
    settings = settings_of(new.values, "the new document")
    for path, value in leaves(document):
        if (place := meant(path)) is not None:
            *groups, key = place
            group = type(at(settings, tuple(groups)))
            beside = LEASE if "leader_election" in groups else {}
            assert at(settings, place) == getattr(group(**beside | {key: value}), key), path
    assert {one.key for one in new.removed} == {
        f"{service}.{key}" for service in (*SERVICES, "autoscale.external_metrics") for key in FIXED
    }
    assert new.notes == ()
    assert migrated(new.values).values == new.values


def test_what_commands_have_in_common_is_said_once_and_what_differs_stays_with_the_command() -> None:
    new = migrated(full_document()).values
    shared = {key: value for key, value in SERVING.items() if key != "port"}
    assert new["serving"] == shared
    assert new["scorer"]["serving"] == {"port": 9000}
    assert new["webhook"] == {"serving": {"port": 9006, "anonymous": False, "drain": "1s"}}
    assert new["leader_election"] == {key: value for key, value in LEASE.items() if key != "name"}
    assert new["schedule"]["leader_election"] == {"name": "lease-of-schedule"}
    assert new["decisions"] == DECISIONS and new["advise"]["decisions"] == {"keep": 3}
    assert new["tenants"] == TENANTS and "tenants" not in new["schedule"]
    assert new["kubernetes"] == {"kubeconfig": "/kube/config"}


def test_a_command_that_had_its_default_keeps_it() -> None:
    document = {command: {"drain": "5s", "kubernetes_auth": True} for command in SERVICES if command != "webhook"}
    settings = settings_of(new := migrated(document).values, "the new document")
    assert new["serving"] == {"drain": "5s", "kubernetes_auth": True}
    assert (settings.scorer.serving.drain, settings.webhook.serving.drain) == (5, 0)
    assert settings.autoscale.external_metrics.serving.drain == 0
    assert not settings.webhook.serving.kubernetes_auth
    assert migrated({"scorer": {"host": "::"}}).values == {"scorer": {"serving": {"host": "::"}}}


def test_a_value_that_finds_another_one_in_its_place_is_named() -> None:
    new = migrated({"scorer": {"kubeconfig": "a", "serving": {"port": 1}, "port": 2}, "webhook": {"kubeconfig": "b"}})
    assert new.values == {"kubernetes": {"kubeconfig": "a"}, "scorer": {"serving": {"port": 1}}}
    assert [one.partition(":")[0] for one in new.notes] == [
        "`scorer.port` is left out",
        "`webhook.kubeconfig` is left out",
    ]


def test_a_value_that_counts_for_more_in_its_place_is_named() -> None:
    document = {"extender": {"highest_peaks": {"cpu": 0.9}}, "schedule": {"highest_peaks": {"cpu": 0.8, "log": 1}}}
    new = migrated(document)
    assert new.values == {"node_rules": {"highest_peaks": {"cpu": 0.9, "log": 1}}}
    assert "`extender.highest_peaks` is `node_rules.highest_peaks` now, which counts for our loops" in new.notes[0]
    assert new.notes[1].startswith("`schedule.highest_peaks.cpu` is left out: `node_rules.highest_peaks.cpu` has")


def test_aliases_in_a_document_are_places_of_their_own() -> None:
    shared = {"host": "::"}
    assert migrated({"scorer": shared, "extender": shared}).values == {
        one: {"serving": {"host": "::"}} for one in ("scorer", "extender")
    }


_OLD_KEYS: Final = [path for path, _ in leaves(full_document())]


@given(st.dictionaries(st.sampled_from(_OLD_KEYS), st.sampled_from(["a", "b", 1, True, None, ["x"]]), max_size=12))
def test_migrating_a_migrated_document_changes_nothing(chosen: dict[tuple[str, ...], Any]) -> None:
    document: dict[str, Any] = {}
    for path, value in chosen.items():
        place = document
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = value
    once = migrated(document).values
    again = migrated(once)
    assert (again.values, again.removed, again.notes) == (once, (), ())


def test_every_shared_group_has_its_place_in_the_document() -> None:
    assert set(SHARED) <= Settings.model_fields.keys()


def test_the_command_prints_or_replaces_and_says_what_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.yaml"
    old.write_text("# mine\nscorer: {port: 1, connections: 9}\n")
    monkeypatch.setenv("FORECAST_SCHEDULER_CONFIG", str(old))
    assert run(["settings", "migrate", str(old)]) == 0
    said = capsys.readouterr()
    assert yaml.safe_load(said.out) == {"scorer": {"serving": {"port": 1}}}
    assert "`scorer.connections` is gone: 500 at once" in said.err
    assert old.read_text().startswith("# mine")
    assert run(["settings", "migrate", str(old), "--in-place"]) == 0
    assert capsys.readouterr().out == ""
    text = old.read_text()
    assert load_settings(old, {}).scorer.serving.port == 1
    assert run(["settings", "migrate", str(old), "--in-place"]) == 0
    assert "has no key of an earlier version" in capsys.readouterr().err and old.read_text() == text
    assert run(["settings", "migrate", str(tmp_path / "none.yaml")]) == 2
    old.write_text("scorer: {port: many}\n")
    for arguments in ([], ["--in-place"]):
        assert run(["settings", "migrate", str(old), *arguments]) == 2
        assert "the new document of" in capsys.readouterr().err
    assert old.read_text() == "scorer: {port: many}\n"
