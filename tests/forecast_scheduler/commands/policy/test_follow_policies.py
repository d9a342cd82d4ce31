"""Where policies come from: settings, the option of commands, and what a start makes of a document that is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from base.errors import InputError
from forecast_scheduler.commands.command_options import policies_option
from forecast_scheduler.commands.policy.followed_policies import open_policies, read_policies
from forecast_scheduler.settings.document import Settings, with_options
from kube.client.cluster_access import CURRENT_CLUSTER
from tests.placement.policies.made_up import DOCUMENT, pod


def settings_with(where: str | None, **groups: Any) -> Settings:
    return with_options(Settings.model_validate(groups), {"policies": policies_option(where)})


def test_the_option_takes_the_place_of_either_setting_and_two_are_refused() -> None:
    for groups in ({}, {"policies": {"file": "other.yaml"}}, {"policies": {"config_map": "other/one"}}):
        named = settings_with("configmap:shop/policies", **groups).policies
        assert (named.file, named.config_map) == (None, "shop/policies")
        named = settings_with("policies.yaml", **groups).policies
        assert (named.file, named.config_map) == (Path("policies.yaml"), None)
    assert settings_with(None, policies={"file": "other.yaml"}).policies.file == Path("other.yaml")
    for where, message in (("configmap:", "names nothing"), ("configmap:policies", r"policies\.config_map")):
        with pytest.raises(InputError, match=message):
            settings_with(where)
    with pytest.raises(ValueError, match="leave one of them out"):
        Settings.model_validate({"policies": {"file": "a.yaml", "config_map": "a/b"}})


@pytest.mark.parametrize("text", [None, "", "default: x", "policies: {a: {highest_peaks: {cpu: 0.5}}}"])
def test_a_start_with_nothing_good_has_the_settings(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "policies.yaml"
    if text is not None:
        path.write_text(text)
    settings = settings_with(str(path), extender={"scorer": {"url": "http://elsewhere"}, "domain": "blue"})
    with open_policies(settings, CURRENT_CLUSTER, has_api_server=False) as live:
        assert live is not None and live.provider.status.refusal is not None
        assert "forecast_policy_document_valid" in {one.name for one in live.collector.collect()}
        policy = live.provider.choose(pod()).policy
        assert policy.name == "settings" and [one.name for one in policy.filters] == [
            "Domain",
            "MachineGroup",
            "CardTypes",
        ]


def test_policies_leave_the_rest_to_the_settings_which_have_to_be_right(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text("policies: {a: {}}\ndefault: a")
    groups = {
        "scorer": {"scores": {"weights": {"balance": 3}}},
        "node_rules": {"cards": {"rare_types": ["H100"]}, "highest_peaks": {"cpu": 0.5}},
    }
    with open_policies(settings_with(str(path), **groups), CURRENT_CLUSTER, has_api_server=False) as live:
        assert live is not None
        policy = live.provider.choose(pod()).policy
    assert policy.name == "a" and policy.scoring.weights == {"balance": 3.0}
    assert policy.cards.options.rare_types == ("H100",)
    assert [one.name for one in policy.filters] == ["Domain", "MachineGroup", "CardTypes", "PredictedPeak"]
    settings = settings_with(str(tmp_path / "none"), extender={"standard_filters": ["Nothing"]})
    with (
        pytest.raises(InputError, match="there is no filter 'Nothing'"),
        open_policies(settings, CURRENT_CLUSTER, has_api_server=False),
    ):
        pass


def test_whoever_looks_once_needs_a_document_that_is_good(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    settings = settings_with(str(path))
    with pytest.raises(InputError, match=f"policies {path} cannot be read: No such file"):
        read_policies(settings, CURRENT_CLUSTER)
    path.write_text("default: x")
    with pytest.raises(InputError, match=f"{path}: default: there is no policy 'x'"):
        read_policies(settings, CURRENT_CLUSTER)
    path.write_text(DOCUMENT)
    provider = read_policies(settings, CURRENT_CLUSTER)
    assert provider is not None and provider.choose(pod({"app": "cart"})).policy.name == "latency-critical"
    assert read_policies(Settings(), CURRENT_CLUSTER) is None
