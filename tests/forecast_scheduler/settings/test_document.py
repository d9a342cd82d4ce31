"""Settings: where a value comes from, and what a mistake says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from base.errors import InputError
from base.setting_group import SettingGroup
from forecast_scheduler.settings.document import Settings, load_settings, with_options
from forecast_scheduler.settings.page import PAGE, settings_page


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_the_environment_wins_over_the_file_and_the_option_over_both(config: Path, tmp_path: Path) -> None:
    settings = load_settings(None, {})
    config.write_text("# nothing yet\n")
    assert load_settings(config, {}) == settings
    assert settings.history is None
    assert settings.models.location == "models"
    assert (settings.replay.days, settings.replay.seed) == (7, 0)
    assert settings.models.public_key is None
    config.write_text("history: /data\nreplay:\n  days: 3\n  seed: 5\n")
    settings = load_settings(config, {"FORECAST_SCHEDULER_REPLAY__DAYS": "4", "PATH": "/bin"})
    assert settings.history == "/data"
    assert (settings.replay.days, settings.replay.seed) == (4, 5)
    config.write_text("replay: {seed: 1}\n")
    other = tmp_path / "other.yaml"
    other.write_text("replay: {seed: 2}\n")
    environment = {"FORECAST_SCHEDULER_CONFIG": str(config)}
    assert load_settings(None, environment).replay.seed == 1
    assert load_settings(other, environment).replay.seed == 2


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_a_file_of_a_windows_editor_is_read(config: Path, encoding: str) -> None:
    config.write_text("time_zone: Europe/Berlin\ntrain: {jobs: 3}\n", encoding=encoding, newline="\r\n")
    settings = load_settings(config, {})
    assert (settings.time_zone, settings.train.jobs) == ("Europe/Berlin", 3)


@pytest.mark.parametrize(("text", "countries"), [("NO", "NO"), ("[DE, NO, US]", "DE,NO,US")])
def test_norway_is_a_country_and_several_are_a_list(config: Path, text: str, countries: str) -> None:
    config.write_text(f"holiday_country: {text}\n")
    assert load_settings(config, {}).holiday_country == countries


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replay: {dayz: 7}", r"unknown key 'replay.dayz': did you mean 'replay.days'\?"),
        ("modles: {}", r"unknown key 'modles': did you mean 'models'\?"),
        (
            "zzz: 1",
            r"unknown key 'zzz': known keys are hot_share, excluded, change_windows, history, time_zone, ",
        ),
        ("replay: {days: many}", r"sets 'replay.days' to 'many': input should be a valid integer"),
        ("replay: {days: 0}", r"sets 'replay.days' to 0: input should be greater than or equal to 1"),
        ("prometheus: {step: 7m}", r"sets 'prometheus.step' to '7m': it must divide an hour"),
        (
            "change_windows: [at night]",
            r"sets 'change_windows' to \['at night'\]: 'at' in the hours 'at night' is no weekday: write mon, tue",
        ),
        ("excluded: {services: [cart]}", r"sets 'excluded.services' .*'cart' is no service: write NAMESPACE/NAME or"),
        ("prometheus: {step: soon}", r"sets 'prometheus.step' to 'soon': write a duration such as 200ms, 30s"),
        ("prometheus: {log_source: loki}", r"sets 'prometheus.log_source' to 'loki': input should be 'auto', 'vector'"),
        (
            "scorer: {scores: {water_levels: {lower: 0.7}}}",
            r"wrong under 'scorer.scores.water_levels': lower must be below",
        ),
        ("replay: 7", r"sets 'replay' to 7: input should be"),
        ("- a\n- b", r"holds a list: write `key: value` lines"),
        ("a: [1", r"not valid YAML near line \d"),
        ("\x00", r"it is no text: byte 0 is null"),
        ("train: {jobs: 1}\ntrain: {jobs: 2}", r"not valid YAML near line 2 \(key 'train' is there twice\)"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_with_the_way_out(config: Path, text: str | None, message: str) -> None:
    if text is not None:
        config.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_settings(config, {})
    assert str(config) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"REPLAY__SEDE": "1"}, "environment .* 'replay.sede': did you mean 'replay.seed'"),
        ({"REPLAY__SEED": "-1"}, "sets 'replay.seed' to '-1'"),
        ({"REPLAY_DAYS": "3"}, r"REPLAY_DAYS, .* did you mean FORECAST_SCHEDULER_REPLAY__DAYS\?"),
        ({"SCORER__SERVING_PROBE_PORT": "1"}, r"did you mean FORECAST_SCHEDULER_SCORER__SERVING__PROBE_PORT\?"),
        ({"HOT__SHARE": "1"}, r"did you mean FORECAST_SCHEDULER_HOT_SHARE\?"),
        ({"REPLAY": "x", "REPLAY__SEED": "1"}, "remove one of them"),
    ],
)
def test_a_mistake_in_the_environment_is_blamed_on_it(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_settings(None, {f"FORECAST_SCHEDULER_{name}": value for name, value in environment.items()})


def test_options_of_the_command_line_are_checked_like_settings() -> None:
    settings = load_settings(None, {"FORECAST_SCHEDULER_TRAIN__JOBS": "3"})
    given: dict[str, dict[str, Any]] = {"train": {"jobs": None, "backend": "loky"}, "prometheus": {"days": 9}}
    merged = with_options(settings, given)
    assert (merged.train.jobs, merged.train.backend, merged.prometheus.days) == (3, "loky", 9)
    with pytest.raises(InputError, match=r"command line sets 'train.jobs' to 0: it must be at least 1, or -1"):
        with_options(settings, {"train": {"jobs": 0}})
    with pytest.raises(InputError, match=r"command line sets 'prometheus.days' to 401: input should be less than"):
        with_options(settings, {"prometheus": {"days": 401}})


def groups_of(group: type[SettingGroup]) -> Iterator[type[SettingGroup]]:
    """The group and those inside it, also in lists."""
    yield group
    for field in group.model_fields.values():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, SettingGroup):
                yield from groups_of(part)


def test_every_setting_is_explained_and_the_pages_are_right(config: Path) -> None:
    silent = [
        f"{group.__name__}.{name}"
        for group in groups_of(Settings)
        for name, field in group.model_fields.items()
        if name not in group.texts()
        and not (isinstance(field.annotation, type) and issubclass(field.annotation, SettingGroup))
    ]
    assert silent == []
    assert PAGE.read_text() == settings_page(), "run python -m forecast_scheduler.settings.page"
    page = (Path(__file__).parents[3] / "docs" / "use" / "command-line.md").read_text()
    config.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    assert load_settings(config, {}).models.location == "s3://platform/forecast-models"
