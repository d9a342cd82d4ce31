"""Keys of earlier versions: one error names them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from base.errors import InputError
from base.setting_group import SettingGroup
from forecast_scheduler.settings import former_key_lookup
from forecast_scheduler.settings.document import Settings, group_in, load_settings
from forecast_scheduler.settings.former_key_lookup import former_keys_in
from forecast_scheduler.settings.former_keys import FORMER, REMOVED, WIDER


def test_a_file_with_former_keys_is_refused_with_one_error_that_names_them_all(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text("schedule:\n  gpu: {groups: [], devices: {}}\n  job: {queues: [{name: etl}]}\n  nonsense: 1\n")
    with pytest.raises(InputError) as caught:
        load_settings(old, {})
    assert str(caught.value) == (
        f"config file {old} has 3 keys of an earlier version: `schedule.gpu.groups` is `node_rules.machine_groups` now;"
        " `schedule.gpu.devices` is `node_rules.devices` now; `schedule.job.queues` is `schedule.queues` now,"
        " which counts for pods of every profile; a queue with `profiles: [job]` takes jobs only (docs/use/queues.md):"
        f" run `forecast-scheduler settings migrate {old}`"
    )


def test_so_is_an_environment_with_them() -> None:
    environment = {"FORECAST_SCHEDULER_SCHEDULE__JOB__LONGEST_WAIT": "1h"}
    now = r"environment .* 1 key .*`schedule.job.longest_wait` is `schedule.longest_wait` now"
    with pytest.raises(InputError, match=now):
        load_settings(None, environment)


def test_former_keys_are_found_in_lists_under_chosen_names_and_below_former_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(former_key_lookup, "FORMER", {"old": "new", "queues[].rank": "queues[].weight"})
    monkeypatch.setattr(former_key_lookup, "REMOVED", {"old.gone": "why", "plugins.NAME.path": "why"})
    values: dict[Any, Any] = {
        "old": {"gone": 1, "kept": 2},
        "queues": [{"rank": 1}, {"weight": 2}],
        "plugins": {"mine": {"path": "p", "on": True}},
        "new": {},
        None: {"": 1},
    }
    assert [one.key for one in former_keys_in(values)] == ["old.gone", "old", "queues.0.rank", "plugins.mine.path"]
    assert [one.key for one in former_keys_in({"old": {"gone": 1}})] == ["old.gone"]


def test_no_key_has_two_fates() -> None:
    assert set(FORMER) & set(REMOVED) == set()
    assert set(WIDER) <= set(FORMER)


def test_former_keys_lead_to_keys_that_exist_and_exist_no_more_themselves() -> None:
    assert [new for new in FORMER.values() if not _exists(new)] == []
    assert [old for old in (*FORMER, *REMOVED) if _exists(old)] == []


def _exists(key: str) -> bool:
    group: type[SettingGroup] | None = Settings
    for part in key.replace("[]", "").replace(".NAME", "").split("."):
        if group is None or part not in group.model_fields:
            return False
        group = group_in(group.model_fields[part].annotation)
    return True
