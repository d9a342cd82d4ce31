"""Settings of the rules about nodes reach every profile; keys that moved are refused."""

from __future__ import annotations

from typing import Any

import pytest

from forecast.errors import InputError
from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.schedule_options import schedule_policy_defaults
from placement.card_types.options import Even, Protection
from placement.machine_groups.options import Borrow, Group, GroupOwner
from placement.node_rule_options import NodeRuleOptions


def settings(**changed: Any) -> NodeRuleOptions:
    return with_options(Settings(), {"node_rules": changed}).node_rules


def test_what_is_set_gets_there() -> None:
    lent = {"name": "search", "owners": [{"namespaces": ["a"]}], "borrow": "idle", "keep_free": 0.1}
    said = {"protection": "hard", "even": "all", "half_life": "1h"}
    options = settings(cards=said, machine_groups=[lent])
    cards, (group,) = options.cards, options.machine_groups
    assert (cards.protection, cards.even, cards.half_life) == (Protection.HARD, Even.ALL, 3600)
    assert group == Group(name="search", owners=(GroupOwner(namespaces=("a",)),), borrow=Borrow.IDLE, keep_free=0.1)


@pytest.mark.parametrize("changed", [{"machine_groups": [{"name": "a", "keep_free": 2}]}, {"cards": {"band": 0}}])
def test_what_cannot_work_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        settings(**changed)


def test_groups_hold_for_pods_of_all_profiles() -> None:
    ours = with_options(Settings(), {"node_rules": {"machine_groups": [{"name": "search"}]}})
    assert schedule_policy_defaults(ours).filters.groups == (Group(name="search"),)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("devices", "node_rules.devices"),
        ("cards", "node_rules.cards"),
        ("groups", "node_rules.machine_groups"),
        ("topology", "node_rules.topology"),
    ],
)
def test_a_key_that_moved_is_refused_and_the_new_one_is_named(old: str, new: str) -> None:
    with pytest.raises(InputError, match=f"'schedule.gpu.{old}', which is '{new}' now"):
        with_options(Settings(), {"schedule": {"gpu": {old: {}}}})
