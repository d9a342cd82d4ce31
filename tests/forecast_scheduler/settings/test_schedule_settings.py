"""Settings of `schedule`: what is refused, and what becomes of them."""

from __future__ import annotations

import numpy as np
import pytest

from base.errors import InputError
from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.feature_options import (
    schedule_policy,
    schedule_policy_defaults,
    service_options,
    sharing_options,
)
from placement.filters.domain import Domain
from placement.node_rule_settings import Borrow, Even, GroupOwner, MachineGroupOptions, Protection
from profiles.gpu.fragmentation.balanced import Balanced
from profiles.gpu.fragmentation.packing_cost import Packing
from profiles.gpu.fragmentation.pod_shapes import PodShape, ShapeMix
from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.gpu_tables import judge_maker
from tests.profiles.gpu.fragmentation.cases import node_states


def _settings(**schedule: object) -> Settings:
    return with_options(Settings(), {"schedule": schedule})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"leader_election": {"duration": "7s"}}, "a duration of 7 s, .* duration must be above renew_deadline"),
        ({"leader_election": {"duration": "1500ms"}}, "duration must be whole seconds"),
        ({"share_nodes": ["", "forecast-scheduler"]}, "share_nodes names 'forecast-scheduler'"),
        ({"profiles": []}, "at least 1 item"),
        ({"profiles": ["online", "online"]}, "each profile may be named once"),
        (
            {"profiles": ["online", "job"], "job": {"scheduler_name": "forecast-scheduler"}},
            "online and job both have 'forecast-scheduler'",
        ),
        ({"queues": [{"name": "etl"}, {"name": "etl"}]}, "queue etl is there twice"),
        ({"gpu": {"placement": "random"}}, "schedule.gpu.placement"),
        ({"gpu": {"tide": {"grace": "2d"}}}, "schedule.gpu.tide.grace"),
    ],
)
def test_what_cannot_work_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _settings(**changed)


def test_rules_about_nodes_and_gpus_get_to_every_profile() -> None:
    lent = {"name": "search", "owners": [{"namespaces": ["a"]}], "borrow": "idle", "keep_free": 0.1}
    said = {"protection": "hard", "even": "all"}
    settings = with_options(Settings(), {"node_rules": {"cards": said, "machine_groups": [lent]}})
    cards, (group,) = settings.node_rules.cards, settings.node_rules.machine_groups
    assert (cards.protection, cards.even) == (Protection.HARD, Even.ALL)
    assert group == MachineGroupOptions(
        name="search", owners=(GroupOwner(namespaces=("a",)),), borrow=Borrow.IDLE, keep_free=0.1
    )
    assert schedule_policy_defaults(settings).filters.rules == settings.node_rules
    with pytest.raises(InputError, match="keep_free"):
        with_options(Settings(), {"node_rules": {"machine_groups": [lent | {"keep_free": 2}]}})
    gpu = _settings(gpu={"idle_cpu": {"memory_per_gpu": 2}, "tide": {"grace": "10m"}}).schedule.gpu
    assert gpu.idle_cpu.memory_bytes_per_gpu == 2 * 2**30 and gpu.tide == TideOptions(grace=600)
    mix, nodes = ShapeMix((PodShape(1000, 0, 1, 1000),), np.ones(1)), node_states([(8000, 8192, 0, [1000])])
    assert isinstance(judge_maker(gpu)(mix, ["T4"], nodes), Packing)
    assert isinstance(judge_maker(_settings(gpu={"placement": "balanced"}).schedule.gpu)(mix, ["T4"], nodes), Balanced)


def test_settings_become_the_options_of_the_parts() -> None:
    settings = _settings(
        domain="blue",
        share_nodes=["", "green"],
        scheduler_name="mine",
        serving={"max_concurrent": 7},
    )
    sharing = sharing_options(settings.schedule, "replica-1")
    assert (sharing.domain, sharing.shared, sharing.scheduler_names) == ("blue", ("", "green"), ("mine",))
    assert sharing.repair and sharing.instance == "replica-1"
    assert service_options(settings, settings.schedule.serving).serving.max_concurrent == 7
    (domain,) = [one for one in schedule_policy(settings).filters if isinstance(one, Domain)]
    assert (domain.domain, domain.shared) == ("blue", frozenset({"", "green"}))
