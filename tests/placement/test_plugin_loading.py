"""Plugins of other packages are those that the settings name; a mistake is blamed on its key."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from pydantic import BaseModel, Field

from base.arrays import Bools, Ints
from base.errors import InputError
from kube.objects.objects import PodInfo
from placement import plugin_loading
from placement.node_plugin import NodeArrays, NodePlugin
from placement.plugin_loading import GROUP, used_plugins
from placement.plugin_options import PluginOptions
from placement.policies.compiling import PolicyDefaults, compile_document
from placement.policies.document import read_document
from placement.policies.filter_choice import FilterOptions


class Wanted(BaseModel):
    most: int = Field(3, ge=1)


class FewPods(NodePlugin):
    name, settings_class = "FewPods", Wanted

    def filter(self, pod: PodInfo, nodes: NodeArrays) -> Bools:
        return np.asarray(nodes.pods < self.settings.most)

    def score(self, pod: PodInfo, nodes: NodeArrays) -> Ints:
        return 100 - np.minimum(nodes.pods, 100)


class Twin(FewPods):
    """Another entry point with a plugin of the same name."""


class OfOurs(FewPods):
    name = "NodePorts"


class Idle(NodePlugin):
    name = "Idle"


class NoPlugin:
    name = "NoPlugin"


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{value}" if value else "no.such.module:Thing", GROUP)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [point(*one) for one in (("few-pods", "FewPods"), ("twin", "Twin"), ("of-ours", "OfOurs"))]
    points += [point(*one) for one in (("idle", "Idle"), ("no-plugin", "NoPlugin"), ("broken", ""))]
    monkeypatch.setattr(plugin_loading, "entry_points", lambda group: points)
    monkeypatch.setattr(plugin_loading, "_made", {})


def test_the_same_name_and_settings_are_one_object_and_others_another() -> None:
    one, same, other = (
        used_plugins({"few-pods": PluginOptions(profiles=["online"], settings=settings)}).plugins[0]
        for settings in ({}, {"most": 3}, {"most": 4})
    )
    assert one.guard is same.guard is not other.guard
    assert (one.guard.plugin.settings.most, other.guard.plugin.settings.most) == (3, 4)


def test_it_counts_where_the_settings_say_and_elsewhere_has_no_weight() -> None:
    used = used_plugins({"few-pods": PluginOptions(profiles=["online"], weight=7)})
    assert [one.name for one in used.filters("online")] == ["FewPods"] and used.filters("gpu") == ()
    assert [(one.name, weight) for one, weight in used.scores("online")] == [("FewPods", 7)]
    assert [weight for _, weight in used.scores("gpu")] == [0]


WRONG = {
    "few-pod": ({}, "no installed package has an entry point 'few-pod' in the group forecast_scheduler.plugins: did"),
    "broken": ({}, "plugins.broken: no.such.module:Thing cannot be loaded: No module named 'no'"),
    "no-plugin": ({}, "NoPlugin is no NodePlugin with a name"),
    "of-ours": ({}, "plugins.of-ours: we have a plugin NodePorts: give OfOurs another name"),
    "idle": ({}, "plugins.idle: Idle overrides none of filter, score, pre_bind, post_bind"),
    "few-pods": ({"mots": 2}, "plugins.few-pods.settings has no key 'mots': did you mean most?"),
    "twin": ({"most": 0}, "plugins.twin.settings.most: input should be greater than or equal to 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_blamed_on_its_key(name: str) -> None:
    settings, why = WRONG[name]
    with pytest.raises(InputError) as raised:
        used_plugins({name: PluginOptions(settings=dict(settings))})
    assert why in str(raised.value)


def test_two_entry_points_have_no_plugin_of_one_name() -> None:
    with pytest.raises(InputError, match="two entry points have a plugin of the name 'FewPods'"):
        used_plugins({"few-pods": PluginOptions(), "twin": PluginOptions()})


def test_a_policy_names_filters_and_scores_of_other_packages_as_ours() -> None:
    used = used_plugins({"few-pods": PluginOptions()})
    defaults = PolicyDefaults(filters=FilterOptions(plugins=used.filters()), score_plugins=("FewPods",))
    text = "policies: {spread: {filters: [Domain, FewPods], scores: {plugin_weights: {FewPods: 5}}}}"
    policy = compile_document(read_document(text), defaults).policies["spread"]
    assert [one.name for one in policy.filters] == ["Domain", "FewPods"] and policy.plugin_weights["FewPods"] == 5
    for wrong in (text.replace("[Domain, FewPods]", "[FewPod]"), text.replace("{FewPods: 5}", "{FewPod: 5}")):
        with pytest.raises(InputError, match="did you mean FewPods"):
            compile_document(read_document(wrong), defaults)
