"""`train`: read a history, fit a model, publish it."""

from __future__ import annotations

from datetime import UTC, datetime

from forecast_scheduler.options import ConfigOption, HistoryOption, ModelsOption, VerboseOption
from forecast_scheduler.shell import open_shell

COLD_START_DAYS = 7
"""With less than a week of history no weekday has been seen twice, and most not at all."""


def train(
    history: HistoryOption = None,
    models: ModelsOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Learn from a history what every service will use, and publish the model.

    Whatever goes wrong, the model in use before stays in use.
    """
    shell = open_shell(config, verbose=verbose)
    directory = shell.history(history)

    from forecast_scheduler.history_source import open_history, tell_what_was_cleaned
    from forecast_scheduler.model_store import open_registry
    from trainer.nightly import train_and_publish

    registry = open_registry(shell.settings.models, models)
    with shell.progress() as progress:
        files = open_history(shell.settings, directory, progress)
        known = files.history(progress=progress)
        published = train_and_publish(
            known, registry, now=datetime.now(UTC), data_digest=files.digest(), progress=progress
        )
    tell_what_was_cleaned(shell, files)
    model = published.model
    if model.trained_days < COLD_START_DAYS:
        shell.err.print(
            f"note: {model.trained_days} days are less than a week: this is a cold-start model, which leans on "
            "requests and on what similar services use; train again as the history grows",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    shell.out.print(
        f"published {published.version} at {registry.url}: {len(model.services)} services, {len(model.nodes)} nodes, "
        f"learned from {model.trained_days} days, forecasts from {model.first_day} on",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
