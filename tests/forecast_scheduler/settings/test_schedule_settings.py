"""Settings of `schedule`: what is refused, and what becomes of them."""

from __future__ import annotations

import pytest

from forecast.errors import InputError
from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.schedule_options import (
    profile_names,
    schedule_policy,
    schedule_service_options,
    sharing_options,
)
from placement.filters.domain import Domain
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.policies.policy import OnePolicy
from scheduler.assembly import standard_profile
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.dry_run import DryRun
from scheduler.profiles.online.profile import ONLINE


def _settings(**schedule: object) -> Settings:
    return with_options(Settings(), {"schedule": schedule})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lease": {"duration": "7s"}}, "a duration of 7 s, .* duration must be above renew_deadline"),
        (
            {"lease": {"retry_period": "6s"}},
            r"retry_period of 6 s protects .* renew_deadline above 1\.2 times retry_period",
        ),
        ({"lease": {"duration": "1500ms"}}, "duration must be whole seconds"),
        ({"lease": {"name": ""}}, "at least 1 character"),
        ({"backoff": {"initial": "20s"}}, "longest must be at least initial"),
        ({"share_nodes": ["", "forecast-scheduler"]}, "share_nodes names 'forecast-scheduler'"),
        ({"domain": "", "share_nodes": [""]}, "share_nodes names ''"),
        ({"profiles": []}, "at least 1 item"),
        ({"profiles": ["online", "online"]}, "each profile may be named once"),
        (
            {"profiles": ["online", "job"], "job": {"scheduler_name": "forecast-scheduler"}},
            "online and job both have 'forecast-scheduler'",
        ),
        ({"queues": [{"name": "etl"}, {"name": "etl"}]}, "queue etl is there twice"),
        ({"job": {"queues": [{"name": "etl"}]}}, "'schedule.job.queues', which is 'schedule.queues' now"),
        ({"job": {"online_weight": 2}}, "'schedule.job.online_weight', which is 'schedule.unqueued_weight' now"),
        ({"assume_timeout": "11m"}, "less than or equal to 300"),
        ({"colocation": {"ceiling": 1.2}}, "less than or equal to 1"),
        ({"highest_peaks": {"cpu": 0}}, "greater than 0"),
    ],
)
def test_what_cannot_work_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _settings(**changed)


def test_defaults_keep_off_the_nodes_of_others_and_write_under_a_lease() -> None:
    ours = Settings().schedule
    assert (ours.scheduler_name, ours.profiles, ours.domain, ours.share_nodes) == (
        "forecast-scheduler", ["online"], "forecast-scheduler", []
    )  # fmt: skip
    assert (ours.lease.enabled, ours.lease.duration, ours.lease.renew_deadline, ours.lease.retry_period) == (
        True, 10, 7, 1
    )  # fmt: skip
    assert not ours.dry_run and ours.bounded_scan == 0


def test_settings_become_the_options_of_the_parts() -> None:
    settings = _settings(
        domain="blue",
        share_nodes=["", "green"],
        scheduler_name="mine",
        max_concurrent=7,
    )
    sharing = sharing_options(settings.schedule, "replica-1")
    assert (sharing.domain, sharing.shared, sharing.scheduler_names) == ("blue", ("", "green"), ("mine",))
    assert sharing.repair and sharing.instance == "replica-1"
    assert schedule_service_options(settings).max_concurrent == 7
    (domain,) = [one for one in schedule_policy(settings).filters if isinstance(one, Domain)]
    assert (domain.domain, domain.shared) == ("blue", frozenset({"", "green"}))


def test_a_dry_run_repairs_nothing() -> None:
    assert not sharing_options(_settings(dry_run=True).schedule, "x").repair


def test_all_of_kube_schedulers_filters_run_and_ours_as_switched_on() -> None:
    def filters(settings: Settings) -> list[str]:
        policy = schedule_policy(settings)
        binding = BindingPlugins(bind=(DryRun(),))
        profile = standard_profile(ONLINE, "ours", OnePolicy(policy), binding, fit=NodeResourcesFit())
        return [one.name for one in profile.filters_for(policy)]

    names = filters(_settings())
    assert names[-3:] == ["Domain", "MachineGroup", "CardTypes"]
    assert {"NodeResourcesFit", "InterPodAffinity", "VolumeBinding", "TaintToleration"} <= set(names)
    more = _settings(highest_peaks={"cpu": 0.9})
    assert set(filters(more)) - set(names) == {"PredictedPeak"}


def test_profiles_are_named_with_commas() -> None:
    assert profile_names(" online, gpu ,") == ["online", "gpu"]
