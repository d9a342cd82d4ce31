"""What a look learns is gone after it, also where the store cannot be read."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from base.errors import InputError
from base.progress import silent
from forecast_scheduler.commands.look.learning import learned
from forecast_scheduler.settings.document import Settings
from trainer.prometheus.metrics_store import MetricsStore


def test_a_store_that_does_not_answer_is_one_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = Settings.model_validate({"prometheus": {"patience": 0}})
    look = learned(settings, MetricsStore("http://127.0.0.1:1"), now=datetime.now(UTC), progress=silent)
    with pytest.raises(InputError, match="cannot be reached"):
        look.__enter__()
    assert list(tmp_path.iterdir()) == []
