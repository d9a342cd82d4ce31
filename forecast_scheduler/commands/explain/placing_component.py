"""Which component of ours places a pod: the profile that its schedulerName names, or the extender with
kube-scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass

from forecast_scheduler.settings.document import Settings
from scheduler.profile_judgement import profile_component


@dataclass(frozen=True, slots=True)
class Component:
    """
    profile  : of `schedule`; '' = the extender with kube-scheduler
    words    : for people
    remark   : what else has to be known of it; '' = nothing
    settings : by which the component runs
    """

    profile: str
    words: str
    remark: str
    settings: Settings


def component_of(scheduler_name: str, settings: Settings) -> Component:
    """The component that places pods of this schedulerName. A name that no component has goes to the extender's
    rules, and the words say so."""
    ours = settings.schedule
    for profile, name in {**ours.scheduler_names, **ours.all_scheduler_names}.items():
        if name != scheduler_name:
            continue
        remark = ""
        profiles = list(ours.profiles)
        if profile not in profiles:
            remark = f"schedule.profiles does not name {profile} (--profile): judged as if it ran beside them"
            profiles.append(profile)
        schedule = ours.model_copy(update={"profiles": profiles, "dry_run": True})
        words = profile_component(profile, scheduler_name, ours.domain)
        return Component(profile, words, remark, settings.model_copy(update={"schedule": schedule}))
    extender = settings.extender
    domain = extender.domain or "without a label"
    words = f"the extender beside kube-scheduler (schedulerName {scheduler_name}, domain {domain})"
    remark = "extender.shadow is set: kube-scheduler does not get this advice" if extender.shadow else ""
    if scheduler_name not in extender.scheduler_names:
        words = f"no component of ours places it (schedulerName {scheduler_name}): judged by the extender's rules"
        remark = "extender.scheduler_names names the profiles of kube-scheduler that ask the extender"
    return Component("", words, remark, settings)
