"""One frozen settings object, built once from file and environment and passed down as an argument.

    defaults  <  --config FILE (YAML)  <  environment FORECAST_SCHEDULER_*  <  options of the command

A key `replay.days` is `replay: {days: 7}` in the file and FORECAST_SCHEDULER_REPLAY__DAYS in the environment. Unknown
keys are refused in both: a misspelt setting that is silently ignored is found at the worst of times. Nothing else in
the project reads the environment.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from admission.webhook_settings import WebhookOptions
from advisor.advice_settings import AdviseOptions
from autoscaling.autoscale_settings import AutoscaleOptions, CapacityOptions, RequestOptions
from autoscaling.prices.price_settings import PriceOptions
from base.errors import InputError
from base.excluded import ExcludedOptions
from base.local_hours import checked_hours
from base.setting_group import Country, SettingGroup, what_is_allowed
from base.yaml_reader import UndecodableText, YamlMistake, decoded_text, read_yaml
from forecast.hot_share import HOT_SHARE
from forecast_scheduler.settings.former_key_lookup import former_keys_in
from forecast_scheduler.settings.sections import (
    ExtenderSettings,
    KubernetesSettings,
    PolicySettings,
    ScorerSettings,
    TrainSettings,
)
from kube.leader_election.lease_options import LeaderElectionOptions
from placement.decisions.decision_settings import DecisionOptions
from placement.node_rule_settings import NodeRuleOptions
from placement.plugin_options import PluginOptions
from profiles.schedule_settings import ScheduleSettings
from rebalancer.rebalance_settings import RebalanceOptions
from serving.server_settings import ServingOptions
from tenants.tenant_settings import TenantOptions
from trainer.prometheus.prometheus_settings import PrometheusOptions

ENVIRONMENT_PREFIX = "FORECAST_SCHEDULER_"
CONFIG_VARIABLE = ENVIRONMENT_PREFIX + "CONFIG"


_SERVING_COMMANDS: Final = ("scorer", "extender", "advise", "rebalance", "autoscale", "schedule", "webhook")

SHARED: Final[dict[str, dict[str, tuple[str, ...] | None]]] = {
    "serving": {f"{command}.serving": None for command in _SERVING_COMMANDS}
    # A second port of the autoscaler, whose only client is kube-apiserver.
    | {"autoscale.external_metrics.serving": ("host", "tls_cert", "tls_key", "drain")},
    "leader_election": {f"{command}.leader_election": None for command in ("schedule", "rebalance", "autoscale")}
    # The webhook knows by its times whether an advisor is alive (webhook.advice.alive_for).
    | {"advise.leader_election": ("enabled", "namespace")},
    "decisions": {f"{command}.decisions": None for command in ("extender", "schedule", "advise")},
    "tenants": {f"{command}.tenants": None for command in ("schedule", "advise")},
}
"""By shared group: the groups that have what it sets, unless they set it themselves, and which keys; None = all."""


class ModelsSettings(SettingGroup):
    """Where models are published and which of them are trusted."""

    location: str = "models"
    """Directory or fsspec URL of the models, for instance s3://bucket/models; `--models`."""

    private_key: Path | None = None
    """PEM file with the ed25519 key with which `train` signs models. None: it signs none."""

    public_key: Path | None = None
    """PEM file of ed25519 keys; only models signed by one of them are loaded. None: all are."""

    keep: int = Field(default=7, ge=2)
    """Versions kept for rollback, the one in use among them."""


class ReplaySettings(SettingGroup):
    """What `replay` does unless its options say otherwise."""

    days: int = Field(default=7, ge=1, le=14)
    """Days played back; `--days`."""

    seed: int = Field(default=0, ge=0)
    """Seed of the order in which pods arrive; `--seed`."""


class Settings(SettingGroup):
    """All settings. Options of a command win over these."""

    hot_share: float = Field(default=HOT_SHARE, gt=0, le=1)
    """Share of its capacity above which a node is hot; also the default of `schedule.colocation.ceiling`."""

    excluded: ExcludedOptions = Field(default_factory=ExcludedOptions)

    change_windows: tuple[str, ...] = ()
    """Local times in which running pods may be moved or resized, such as ["Mon-Fri 22:00-06:00"]. Empty: always."""

    history: str | None = None
    """Directory of the history, also any fsspec URL if `train` lets it grow; `--history`."""

    time_zone: str | None = None
    """Time zone of days, half hours and `change_windows`. None: what history.json or the model says, else UTC."""

    holiday_country: Country | None = None
    """Country whose holidays have a profile of their own: DE, or with its part DE-BY. Of several, as [DE, US], each
    service learns which it follows. None: what history.json says."""

    log_format: Literal["text", "json"] = "text"
    """Log lines for people, or one JSON object a line; `--log-format` before the command."""

    serving: ServingOptions = Field(default_factory=ServingOptions)
    leader_election: LeaderElectionOptions = Field(default_factory=LeaderElectionOptions)
    decisions: DecisionOptions = Field(default_factory=DecisionOptions)
    tenants: TenantOptions = Field(default_factory=TenantOptions)
    kubernetes: KubernetesSettings = Field(default_factory=KubernetesSettings)

    models: ModelsSettings = Field(default_factory=ModelsSettings)

    events: Path | None = None
    """YAML file of days that differ, past and to come (docs/operate/train.md); `--events`. None: events.yaml of the
    history."""

    moved: Path | None = None
    """YAML file of services that had another name or cluster (docs/operate/train.md); `--moved`. None: moved.yaml of
    the history."""

    prometheus: PrometheusOptions = Field(default_factory=PrometheusOptions)
    train: TrainSettings = Field(default_factory=TrainSettings)
    replay: ReplaySettings = Field(default_factory=ReplaySettings)
    capacity: CapacityOptions = Field(default_factory=CapacityOptions)
    requests: RequestOptions = Field(default_factory=RequestOptions)
    prices: PriceOptions = Field(default_factory=PriceOptions)
    scorer: ScorerSettings = Field(default_factory=ScorerSettings)
    extender: ExtenderSettings = Field(default_factory=ExtenderSettings)
    advise: AdviseOptions = Field(default_factory=AdviseOptions)
    rebalance: RebalanceOptions = Field(default_factory=RebalanceOptions)
    autoscale: AutoscaleOptions = Field(default_factory=AutoscaleOptions)
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings)
    node_rules: NodeRuleOptions = Field(default_factory=NodeRuleOptions)
    policies: PolicySettings = Field(default_factory=PolicySettings)
    webhook: WebhookOptions = Field(default_factory=WebhookOptions)

    plugins: dict[str, PluginOptions] = Field(default_factory=dict)
    """Plugins to load, by the name of their entry point (docs/extend/plugins.md)."""

    @field_validator("change_windows")
    @classmethod
    def _readable(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        return checked_hours(texts)

    @model_validator(mode="before")
    @classmethod
    def _ceiling_follows_hot_share(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "hot_share" in values:
            return _filled_in(values, ["schedule", "colocation", "ceiling"], values["hot_share"])
        return values

    @model_validator(mode="before")
    @classmethod
    def _commands_follow_shared_groups(cls, values: Any) -> Any:
        for shared, followers in SHARED.items() if isinstance(values, Mapping) else ():
            given = _as_given(values.get(shared, {}))
            for follower, keys in followers.items():
                for key in given if keys is None else given.keys() & set(keys):
                    values = _filled_in(values, [*follower.split("."), key], given[key])
        return values


def load_settings(config: Path | None, environment: Mapping[str, str]) -> Settings:
    """Settings from a file (or the one FORECAST_SCHEDULER_CONFIG names) and the environment; InputError if wrong."""
    if config is None and environment.get(CONFIG_VARIABLE):
        config = Path(environment[CONFIG_VARIABLE])
    values: dict[str, Any] = {}
    if config is not None:
        values = read_document(config)
        _check_former(values, f"config file {config}", f"run `forecast-scheduler settings migrate {config}`")
        settings_of(values, f"config file {config}")  # so that a mistake is blamed on where it was made
    from_environment = _from_environment(environment)
    if not from_environment:
        return settings_of(values, f"config file {config}")
    way_out = f"set the new names instead, as {ENVIRONMENT_PREFIX}REPLAY__DAYS for `replay.days`"
    _check_former(from_environment, "the environment (FORECAST_SCHEDULER_*)", way_out)
    return settings_of(_merge(values, from_environment), "the environment (FORECAST_SCHEDULER_*)")


def with_options(settings: Settings, given: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The settings with options of the command line in their places, checked like all others; None = not given."""
    return settings_of(_merge(settings.model_dump(exclude_unset=True), _without_none(given)), "the command line")


def _without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in options.items()
        if value is not None
    }


def read_document(path: Path) -> dict[str, Any]:
    """Return the values of a file, as they stand there. Raises InputError if it cannot be read or is no document."""
    try:
        values = read_yaml(decoded_text(path.read_bytes()))
    except OSError as error:
        raise InputError(f"config file {path} cannot be read: {error.strerror or error}") from error
    except UndecodableText as error:
        raise InputError(f"config file {path} cannot be read: {error}") from error
    except YamlMistake as error:
        where = f" near line {error.line}" if error.line is not None else ""
        raise InputError(
            f"config file {path} is not valid YAML{where} ({error.problem}): correct it or leave --config out"
        ) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"config file {path} holds a {type(values).__name__}: write `key: value` lines")
    return values


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """FORECAST_SCHEDULER_REPLAY__DAYS=3 -> {"replay": {"days": "3"}}; pydantic turns the text into the field's type."""
    values: dict[str, Any] = {}
    right = {one.replace("__", "_"): one for one in _variables(Settings)}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable == CONFIG_VARIABLE:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        meant = right.get(name.replace("__", "_"), name)
        if meant != name:
            meant = f"{ENVIRONMENT_PREFIX}{meant.upper()}"
            raise InputError(f"the environment sets {variable}, which is no setting: did you mean {meant}?")
        *groups, key = name.split("__")
        place = values
        for group in groups:
            inner = place.setdefault(group, {})
            if not isinstance(inner, dict):
                raise InputError(f"environment sets both {group!r} and keys below it: remove one of them")
            place = inner
        place[key] = text
    return values


def _variables(group: type[SettingGroup]) -> Iterator[str]:
    """The keys of the group and of those in it as variables name them: replay__days."""
    for name, field in group.model_fields.items():
        yield name
        if isinstance(field.annotation, type) and issubclass(field.annotation, SettingGroup):
            yield from (f"{name}__{below}" for below in _variables(field.annotation))


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        merged[key] = _merge(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return merged


def _as_given(group: Any) -> Mapping[str, Any]:
    """Return what a group says explicitly; nothing of a mistake, which is found later."""
    if isinstance(group, SettingGroup):
        return {name: getattr(group, name) for name in group.model_fields_set}
    return group if isinstance(group, Mapping) else {}


def _filled_in(values: Any, path: list[str], value: Any) -> Any:
    """The values with one more at the end of the path, unless it is there."""
    if not isinstance(values, Mapping):
        return values  # a group that is made already, or a mistake that is found later
    key, *below = path
    return {key: value, **values} if not below else {**values, key: _filled_in(values.get(key, {}), below, value)}


def _check_former(values: Mapping[str, Any], source: str, way_out: str) -> None:
    """Raises InputError that names all keys of earlier versions."""
    if found := former_keys_in(values):
        keys = "1 key" if len(found) == 1 else f"{len(found)} keys"
        raise InputError(f"{source} has {keys} of an earlier version: {'; '.join(map(str, found))}: {way_out}")


def settings_of(values: Mapping[str, Any], source: str) -> Settings:
    """Return the settings that the values say. Raises InputError, which names the source."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise InputError(_first_mistake(error, source)) from error


def _first_mistake(error: ValidationError, source: str) -> str:
    """The first thing pydantic found, as one sentence with the way out."""
    mistake = error.errors()[0]
    path = [str(part) for part in mistake["loc"]]
    key = ".".join(path)
    if mistake["type"] == "extra_forbidden":
        allowed = _keys_of_group(path[:-1])
        near = difflib.get_close_matches(path[-1], allowed, n=1)
        hint = f"did you mean {'.'.join([*path[:-1], near[0]])!r}?" if near else f"known keys are {', '.join(allowed)}"
        return f"{source} has the unknown key {key!r}: {hint}"
    if isinstance(mistake["input"], Mapping):  # a group as a whole, which may hold secrets
        return f"{source} is wrong under {key!r}: {what_is_allowed(mistake)}"
    return f"{source} sets {key!r} to {mistake['input']!r}: {what_is_allowed(mistake)}"


def _keys_of_group(path: list[str]) -> list[str]:
    group: type[SettingGroup] = Settings
    for part in path:
        if part in group.model_fields:  # else the place in a list, or the name in a mapping of groups
            group = group_in(group.model_fields[part].annotation) or group
    return list(group.model_fields)


def group_in(annotation: Any) -> type[SettingGroup] | None:
    """The group that a field holds, or holds a list or mapping of."""
    if isinstance(annotation, type) and issubclass(annotation, SettingGroup):
        return annotation
    return next((one for part in get_args(annotation) if (one := group_in(part))), None)
