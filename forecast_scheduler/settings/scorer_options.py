"""Options of the scorer, from several sections of the settings."""

from __future__ import annotations

from forecast_scheduler.settings.document import Settings
from scorer.options import ScorerOptions, ScoringOptions


def scorer_options(settings: Settings) -> ScorerOptions:
    """What the scorer of each command does. Raises InputError where scores are misnamed."""
    prometheus = settings.prometheus
    capacities = {
        "disk": prometheus.disk_capacity,
        "network": prometheus.network_capacity,
        "log": prometheus.log_capacity,
    }
    return ScorerOptions(
        **{name: getattr(settings.scorer, name) for name in ScoringOptions.model_fields},
        usage_window=prometheus.step,
        capacities={name: value for name, value in capacities.items() if value is not None},
        job_schedulers=(settings.schedule.job.scheduler_name,),
    )
