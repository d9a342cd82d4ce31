"""What placing by the forecast would have changed on the recorded days, and how many nodes they needed, by rule."""

from __future__ import annotations

from typing import Any, Final

from autoscaling.capacity.node_cost import GroupPrices
from autoscaling.capacity.nodes_needed import capacity
from base.progress import Progress
from forecast_scheduler.commands.fitted_history import fit_options, prepare_history
from forecast_scheduler.commands.train_night import Trained
from forecast_scheduler.settings.document import Settings
from scorer.replay.preparation import Prepared
from scorer.replay.replay import figures_of_rules
from scorer.replay.replay_figures import gap_closed
from scorer.replay.window import playable_days

_PLAYED: Final = ("native", "forecast", "oracle")
"""What kube-scheduler does, what we do, and the best that could be done."""


def prepared_days(settings: Settings, trained: Trained, progress: Progress) -> Prepared:
    """The last days, and a model of what lay before them, as `capacity` prepares them. Raises NotEnoughHistory."""
    known = trained.history
    days = playable_days(known, settings.replay.days)
    return prepare_history(
        trained.files, known, fit_options(settings), at=None, days=days, hot=settings.hot_share, progress=progress
    )


def placing(prepared: Prepared, settings: Settings, progress: Progress) -> dict[str, Any]:
    """Figures of `replay --json` of the three rules that matter here."""
    figures = figures_of_rules(prepared, _PLAYED, seed=settings.replay.seed, progress=progress)
    return {
        "rules": {name: one.to_json() for name, one in figures.items()},
        "gap_closed": gap_closed(*(figures[name] for name in _PLAYED)),
        "window": prepared.window.to_json(),
    }


def nodes_needed(prepared: Prepared, settings: Settings, prices: GroupPrices, progress: Progress) -> dict[str, Any]:
    """Figures of `capacity --json`."""
    seed = settings.replay.seed
    return capacity(prepared, settings.capacity, seed=seed, prices=prices, progress=progress).to_json()
