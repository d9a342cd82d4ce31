"""Finds settings by words that a user looks for, also by other words than their names have."""

from __future__ import annotations

import re
from typing import Final

from forecast_scheduler.settings.document import ENVIRONMENT_PREFIX, Settings, group_in
from forecast_scheduler.settings.former_key_lookup import FormerKey, former_keys_in
from forecast_scheduler.settings.known_keys import SHARED_BY, KnownKey, known_sections

_LEFT_ALONE: Final = ("excluded", "left alone")
_SWITCHES: Final = ("enabled", "mode", "off", "shadow", "dry_run")
_ALSO: Final = {
    "address": ("host", "url"),
    "audit": ("decisions",),
    "auth": ("token", "client_ca", "kubernetes_auth"),
    "certificate": ("tls", "client_ca"),
    "credentials": ("token", "password_file"),
    "deadline": ("timeout",),
    "disable": _SWITCHES,
    "dry-run": ("dry_run",),
    "exclude": _LEFT_ALONE,
    "excluded": _LEFT_ALONE,
    "gate": ("hold pods",),
    "gated": ("hold pods",),
    "ha": ("leader_election",),
    "https": ("tls",),
    "ignore": _LEFT_ALONE,
    "interval": ("every",),
    "label": ("cluster", "matchers"),
    "leader": ("lease",),
    "lease": ("leader_election",),
    "limit": ("max_", "most"),
    "maintenance": ("change_windows",),
    "mtls": ("client_ca",),
    "namespace": ("excluded",),
    "never": _LEFT_ALONE,
    "night": ("change_windows",),
    "off": _SWITCHES,
    "oversubscription": ("colocation",),
    "period": ("every",),
    "quota": ("tenants",),
    "replicas": ("leader_election",),
    "schedulinggated": ("hold pods",),
    "secret": ("token", "private_key"),
    "skip": _LEFT_ALONE,
    "ssl": ("tls",),
    "stop": (*_LEFT_ALONE, *_SWITCHES),
    "thanos": ("prometheus",),
    "threshold": ("hot_share",),
    "timeout": ("deadline",),
    "timezone": ("time_zone",),
    "tls": ("certificate",),
    "weekend": ("change_windows",),
    "window": ("change_windows",),
}
"""Other words in names and descriptions, by the word that a user may look for."""

_FILLING: Final = frozenset({"a", "an", "at", "the", "of", "for", "from", "in", "my", "on", "to"})


def matching_keys(words: list[str]) -> list[KnownKey]:
    """Return the keys that match every word: those with all of them in their names first, each as the page has them.

    A word matches where a word begins: in the name of a key, in its description, in what it allows, or in the
    description of its group. Capitals and the s of a plural do not matter. A word may be an environment variable.
    """
    searched = [_pattern(key_of(word)) for word in words if word.lower() not in _FILLING]

    def matches(text: str) -> bool:
        return all(pattern.search(text.lower()) for pattern in searched)

    found = [
        key
        for section in known_sections()
        for key in section.keys
        if matches(f"{key.key} {key.meaning} {key.allowed} {section.meaning} {_shared_keys(key.key)}")
    ]
    return sorted(found, key=lambda one: not matches(one.key))


def former_keys_named(words: list[str]) -> list[FormerKey]:
    """Return what the words are that were keys of earlier versions, or environment variables of such keys."""
    found: list[FormerKey] = []
    for word in words:
        value: object = {}
        for part in reversed(key_of(word).split(".")):
            value = {part: value}
        assert isinstance(value, dict)
        found += former_keys_in(value)
    return found


def key_of(word: str) -> str:
    """Return the key that an environment variable sets; other words in small letters."""
    if word.upper().startswith(ENVIRONMENT_PREFIX):
        return word[len(ENVIRONMENT_PREFIX) :].lower().replace("__", ".")
    return word.lower()


def _pattern(word: str) -> re.Pattern[str]:
    singular = word.removesuffix("s") if len(word) > 3 and word not in _ALSO else word
    choices = "|".join(map(re.escape, (singular, *_ALSO.get(singular, ()))))
    return re.compile(rf"(?<![a-z0-9])(?:{choices})")


def _shared_keys(path: str) -> str:
    """Return the keys of a group that repeats a shared one; else nothing."""
    shared = SHARED_BY.get(path)
    group = None if shared is None else group_in(Settings.model_fields[shared].annotation)
    return "" if group is None else " ".join(f"{path}.{name}" for name in group.model_fields)
