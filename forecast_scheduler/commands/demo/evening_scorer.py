"""The last part of the demo: a scorer on the cluster as it was recorded, on the evening of the history's last day."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from base.errors import InputError
from base.progress import Progress
from forecast.fit import fit
from forecast.history import History
from forecast.model_artefact import artefact_of
from forecast_scheduler.commands.demo.recorded_cluster import cluster_at
from forecast_scheduler.commands.model_registry import open_registry
from forecast_scheduler.commands.scorer.setup import Inputs, open_scorer
from forecast_scheduler.commands.serving_access import check_exposed, hosts_of
from forecast_scheduler.commands.shell import write_text
from forecast_scheduler.settings.document import Settings
from scorer.service.app import create_app
from serving.server import ScorerServer
from trainer.history.files import HistoryFiles

_HOUR = 17
"""Before the evening peak, and with a day of measurements to look back on."""


@dataclass(frozen=True, slots=True)
class Evening:
    """A moment of a recorded cluster. moment: local time; cluster, models: files that scorer and explain take."""

    moment: datetime
    cluster: Path
    models: Path
    history: Path
    example_pod: str

    def options(self) -> str:
        """The same for the command line."""
        return (
            f"--cluster {self.cluster} --models {self.models} --history {self.history} "
            f"--at {self.moment:%Y-%m-%dT%H:%M}"
        )


def prepare_evening(
    settings: Settings, files: HistoryFiles, known: History, directory: Path, output: Path, progress: Progress
) -> Evening:
    """Write the cluster as it was at 17:00 on the last day, and publish a model that knows only the days before."""
    day = known.days[-1]
    moment = known.calendar.at(day, _HOUR).astimezone(known.calendar.zone)
    cluster, models = output / "cluster.json", output / "models-of-that-day"
    pods = files.pod_usage(day, day, progress=progress)
    document = cluster_at(known, pods, moment)
    write_text(cluster, json.dumps(document) + "\n")
    model = fit(known.before(known.n_days - 1), progress=progress)
    open_registry(settings.models, str(models)).publish(artefact_of(model, datetime.now(UTC)))
    example = next(item["metadata"] for item in document["items"] if item["kind"] == "Pod")
    return Evening(moment, cluster, models, directory, f"{example['namespace']}/{example['name']}")


def serve_evening(
    settings: Settings, evening: Evening, *, seconds: float | None, on_started: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C, or for some seconds. A port that is taken is no reason not to show the page."""
    inputs = Inputs(cluster=evening.cluster, models=str(evening.models), history=evening.history, at=evening.moment)
    with open_scorer(settings, inputs) as (scorer, background):
        check_exposed(settings.scorer)
        app, options = create_app(scorer, settings.scorer, hosts=hosts_of(settings.scorer)), settings.scorer
        try:
            server = ScorerServer(app, options, on_started)
        except InputError:
            server = ScorerServer(app, options.replace(port=0), on_started)
        timer = None if seconds is None else threading.Timer(seconds, server.stop)
        with background:
            if timer is not None:
                timer.start()
            try:
                server.run()
            finally:
                if timer is not None:
                    timer.cancel()
