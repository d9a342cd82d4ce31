"""Where policies come from: settings, the option of commands, and what a start makes of a document that is none."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from forecast.errors import InputError
from forecast_scheduler.commands.extender.setup import open_extender
from forecast_scheduler.commands.options.policies import policies_option
from forecast_scheduler.commands.policy.follow_policies import open_policies, read_policies
from forecast_scheduler.commands.scorer.setup import Inputs
from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.extender_options import policy_defaults
from tests.placement.policies.made_up import DOCUMENT, pod


def settings_with(where: str | None, **groups: Any) -> Settings:
    return with_options(Settings.model_validate(groups), {"policies": policies_option(where)})


def test_the_option_takes_the_place_of_either_setting() -> None:
    for groups in ({}, {"policies": {"file": "other.yaml"}}, {"policies": {"config_map": "other/one"}}):
        named = settings_with("configmap:shop/policies", **groups).policies
        assert (named.file, named.config_map) == (None, "shop/policies")
        named = settings_with("policies.yaml", **groups).policies
        assert (named.file, named.config_map) == (Path("policies.yaml"), None)
    assert settings_with(None, policies={"file": "other.yaml"}).policies.file == Path("other.yaml")


@pytest.mark.parametrize("where", ["configmap:policies", "configmap:/x", "configmap:a/b/c", "configmap:A/b"])
def test_a_config_map_has_a_namespace_and_a_name(where: str) -> None:
    with pytest.raises(InputError, match=r"policies\.config_map"):
        settings_with(where)


@pytest.mark.parametrize("where", ["", "configmap:"])
def test_an_option_that_names_nothing_is_refused(where: str) -> None:
    with pytest.raises(InputError, match="names nothing"):
        settings_with(where)


def test_a_file_and_a_config_map_are_one_too_many() -> None:
    with pytest.raises(ValueError, match="leave one of them out"):
        Settings.model_validate({"policies": {"file": "a.yaml", "config_map": "a/b"}})


def test_without_policies_there_is_no_provider() -> None:
    with open_policies(Settings()) as live:
        assert live is None


def test_a_file_is_in_effect_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(DOCUMENT)
    with open_policies(settings_with(str(path)), has_api_server=False) as live:
        assert live is not None
        assert live.provider.choose(pod({"app": "cart"})).policy.name == "latency-critical"
        assert live.provider.status.source == f"file {path}"
        assert next(iter(live.collector.collect())).name == "forecast_policy_document_valid"


@pytest.mark.parametrize("text", [None, "", "default: x", "policies: {a: {highest_peaks: {cpu: 0.5}}}"])
def test_a_start_with_nothing_good_has_the_settings(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "policies.yaml"
    if text is not None:
        path.write_text(text)
    settings = settings_with(str(path), extender={"scorer": {"url": "http://elsewhere"}, "domain": "blue"})
    with open_policies(settings, has_api_server=False) as live:
        assert live is not None and live.provider.status.refusal is not None
        policy = live.provider.choose(pod()).policy
        assert policy.name == "settings" and [one.name for one in policy.filters] == [
            "Domain",
            "MachineGroup",
            "CardTypes",
        ]


def test_what_policies_leave_out_is_as_in_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text("policies: {a: {}}\ndefault: a")
    groups = {
        "scorer": {"scores": {"weights": {"balance": 3}}},
        "extender": {"highest_peaks": {"cpu": 0.5}},
        "node_rules": {"cards": {"rare_types": ["H100"]}},
    }
    with open_policies(settings_with(str(path), **groups), has_api_server=False) as live:
        assert live is not None
        policy = live.provider.choose(pod()).policy
    assert policy.name == "a" and policy.scoring.weights == {"balance": 3.0}
    assert policy.cards.options.rare_types == ("H100",)
    assert [one.name for one in policy.filters] == ["Domain", "MachineGroup", "CardTypes", "PredictedPeak"]


def test_settings_that_are_wrong_are_refused_at_once(tmp_path: Path) -> None:
    settings = settings_with(str(tmp_path / "none"), extender={"standard_filters": ["Nothing"]})
    with pytest.raises(InputError, match="there is no filter 'Nothing'"), open_policies(settings, has_api_server=False):
        pass


def test_whoever_looks_once_needs_a_document_that_is_good(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    settings = settings_with(str(path))
    with pytest.raises(InputError, match=f"policies {path} cannot be read: No such file"):
        read_policies(settings, None)
    path.write_text("default: x")
    with pytest.raises(InputError, match=f"{path}: default: there is no policy 'x'"):
        read_policies(settings, None)
    path.write_text(DOCUMENT)
    provider = read_policies(settings, None)
    assert provider is not None and provider.choose(pod({"app": "cart"})).policy.name == "latency-critical"
    assert read_policies(Settings(), None) is None


def test_it_is_known_when_the_file_was_last_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(DOCUMENT)
    began = time.time()
    with open_policies(settings_with(str(path)), has_api_server=False) as live:
        assert live is not None
        found = {metric.name: metric.samples for metric in live.collector.collect()}
    (sample,) = found["forecast_policy_source_last_contact_timestamp_seconds"]
    assert began <= sample.value <= time.time()


@pytest.mark.parametrize("shadow", [False, True])
def test_a_shadow_tells_pods_nothing(monkeypatch: pytest.MonkeyPatch, shadow: bool) -> None:
    told: list[bool] = []

    def open_none(*unused: object, has_api_server: bool) -> None:
        told.append(has_api_server)
        raise InputError("this is enough")

    monkeypatch.setattr("forecast_scheduler.commands.extender.setup.open_policies", open_none)
    settings = Settings.model_validate({"extender": {"shadow": shadow}})
    with pytest.raises(InputError, match="this is enough"), open_extender(settings, Inputs()):
        pass
    assert told == [not shadow]


def test_a_deadline_is_held_against_that_of_a_scorer_elsewhere() -> None:
    assert policy_defaults(Settings()).longest_deadline_seconds is None
    groups = {"extender": {"scorer": {"url": "http://elsewhere"}, "deadline": 0.3}}
    assert policy_defaults(Settings.model_validate(groups)).longest_deadline_seconds == pytest.approx(0.3)
