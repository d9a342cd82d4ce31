"""Settings: where a value comes from, and what a mistake says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from forecast.errors import InputError
from forecast.setting_group import SettingGroup
from forecast_scheduler.settings.document import Settings, load_settings, with_options
from forecast_scheduler.settings.page import PAGE, settings_page
from scheduler.queues.options import FairOptions
from scheduler.settings import ScheduleSettings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_defaults_are_as_documented() -> None:
    settings = load_settings(None, {})
    assert settings.history is None
    assert settings.models.location == "models"
    assert (settings.replay.days, settings.replay.seed) == (7, 0)
    assert settings.models.public_key is None


def test_the_environment_wins_over_the_file_and_leaves_the_rest_of_its_group(config: Path) -> None:
    config.write_text("history: /data\nreplay:\n  days: 3\n  seed: 5\n")
    settings = load_settings(config, {"FORECAST_SCHEDULER_REPLAY__DAYS": "4", "PATH": "/bin"})
    assert settings.history == "/data"
    assert (settings.replay.days, settings.replay.seed) == (4, 5)


def test_the_environment_can_name_the_file_and_the_option_wins_over_it(config: Path, tmp_path: Path) -> None:
    config.write_text("replay: {seed: 1}\n")
    other = tmp_path / "other.yaml"
    other.write_text("replay: {seed: 2}\n")
    environment = {"FORECAST_SCHEDULER_CONFIG": str(config)}
    assert load_settings(None, environment).replay.seed == 1
    assert load_settings(other, environment).replay.seed == 2


def test_norway_is_a_country(config: Path) -> None:
    config.write_text("holiday_country: NO\n")
    assert load_settings(config, {}).holiday_country == "NO"


@pytest.mark.parametrize("text", ["DE,NO,US", "[DE, NO, US]"])
def test_several_countries_are_a_list_or_one_text(config: Path, text: str) -> None:
    config.write_text(f"holiday_country: {text}\n")
    assert load_settings(config, {}).holiday_country == "DE,NO,US"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().history = "/elsewhere"


def test_an_empty_file_means_the_defaults(config: Path) -> None:
    config.write_text("# nothing yet\n")
    assert load_settings(config, {}) == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replay: {dayz: 7}", r"unknown key 'replay.dayz': did you mean 'replay.days'\?"),
        ("modles: {}", r"unknown key 'modles': did you mean 'models'\?"),
        (
            "zzz: 1",
            r"unknown key 'zzz': known keys are history, time_zone, holiday_country, log_format, models",
        ),
        ("replay: {days: many}", r"sets 'replay.days' to 'many': input should be a valid integer"),
        ("replay: {days: 0}", r"sets 'replay.days' to 0: input should be greater than or equal to 1"),
        ("prometheus: {step: 7m}", r"sets 'prometheus.step' to '7m': it must divide an hour"),
        ("prometheus: {step: soon}", r"sets 'prometheus.step' to 'soon': write a duration such as 200ms, 30s"),
        ("prometheus: {log_source: loki}", r"sets 'prometheus.log_source' to 'loki': input should be 'auto', 'vector'"),
        ("schedule: {backoff: {initial: 20s}}", r"wrong under 'schedule.backoff': longest must be at least initial$"),
        ("replay: 7", r"sets 'replay' to 7: input should be"),
        ("- a\n- b", r"holds a list: write `key: value` lines"),
        ("a: [1", r"not valid YAML near line \d"),
        ("\x00", r"not valid YAML"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_with_the_way_out(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_settings(config, {})
    assert str(config) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "FORECAST_SCHEDULER_REPLAY__SEDE",
            "1",
            r"environment .* 'replay.sede': did you mean 'replay.seed'",
        ),
        ("FORECAST_SCHEDULER_HISTROY", "/data", r"did you mean 'history'"),
        ("FORECAST_SCHEDULER_REPLAY__SEED", "-1", r"sets 'replay.seed' to '-1'"),
    ],
)
def test_a_mistake_in_the_environment_is_blamed_on_it(variable: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_settings(None, {variable: value})


def test_a_group_and_a_key_below_it_cannot_both_be_in_the_environment() -> None:
    with pytest.raises(InputError, match="remove one of them"):
        load_settings(None, {"FORECAST_SCHEDULER_REPLAY": "x", "FORECAST_SCHEDULER_REPLAY__SEED": "1"})


def test_options_of_the_command_line_are_checked_like_settings() -> None:
    settings = load_settings(None, {"FORECAST_SCHEDULER_TRAIN__JOBS": "3"})
    given: dict[str, dict[str, Any]] = {"train": {"jobs": None, "backend": "loky"}, "prometheus": {"days": 9}}
    merged = with_options(settings, given)
    assert (merged.train.jobs, merged.train.backend, merged.prometheus.days) == (3, "loky", 9)
    with pytest.raises(InputError, match=r"command line sets 'train.jobs' to 0: it must be at least 1, or -1"):
        with_options(settings, {"train": {"jobs": 0}})
    with pytest.raises(InputError, match=r"command line sets 'prometheus.days' to 401: input should be less than"):
        with_options(settings, {"prometheus": {"days": 401}})


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("5m", 300), ("1m30s", 90), ("300", 300)])
def test_durations_are_written_as_in_prometheus(text: str, seconds: float, config: Path) -> None:
    config.write_text(f"prometheus: {{step: {text}}}\n")
    assert load_settings(config, {}).prometheus.step == seconds


def test_a_duration_may_be_in_milliseconds(config: Path) -> None:
    config.write_text("extender: {deadline: 250ms, charge: 1s500ms}\n")
    settings = load_settings(config, {}).extender
    assert (settings.deadline, settings.charge) == (0.25, 1.5)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml cannot be read: No such file"):
        load_settings(tmp_path / "nowhere.yaml", {})


def groups_of(group: type[SettingGroup]) -> Iterator[type[SettingGroup]]:
    """The group and those inside it, also in lists."""
    yield group
    for field in group.model_fields.values():
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, SettingGroup):
                yield from groups_of(part)


def test_every_setting_is_explained_below_its_field() -> None:
    silent = [
        f"{group.__name__}.{name}"
        for group in groups_of(Settings)
        for name, field in group.model_fields.items()
        if name not in group.texts()
        and not (isinstance(field.annotation, type) and issubclass(field.annotation, SettingGroup))
    ]
    assert silent == []


def test_the_page_of_settings_is_what_the_classes_say() -> None:
    assert PAGE.read_text() == settings_page(), "run python -m forecast_scheduler.settings.page"


@pytest.mark.parametrize(
    "row",
    [
        "| `replay.days` | 7 | 1 to 14 |",
        "| `extender.deadline` | 200ms | above 0 |",
        "| `prometheus.log_rotation_cap_bytes` | 50 MiB | above 0 |",
        "| `scorer.scores.usage_weights` | `{cpu: 1, memory: 0.25, disk: 1, network: 1, log: 1}` | at least 0 |",
        "| `schedule.queues[].order` | drf | fifo, priority, deadline, drf |",
        "| `schedule.queues[].name` | required |  |",
        "| `schedule.job.serverless.providers[].name` | required | 1 to 63 characters |",
        "| `schedule.lease.name` | forecast-scheduler | not empty |",
        "| `schedule.gpu.tide.half_life` | 6h | 1m to 7d |",
        "| `node_rules.machine_groups[].owners[].namespaces` | none |  |",
    ],
)
def test_the_page_says_what_is_allowed(row: str) -> None:
    assert any(line.startswith(row) for line in settings_page().splitlines())


def test_that_pods_go_next_after_a_wait_can_be_turned_off() -> None:
    assert ScheduleSettings(longest_wait=0).longest_wait == 0
    assert ScheduleSettings().longest_wait == FairOptions().longest_wait > 0


def test_the_example_in_the_docs_is_valid(config: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "use" / "command-line.md").read_text()
    config.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    assert load_settings(config, {}).models.location == "s3://platform/forecast-models"
