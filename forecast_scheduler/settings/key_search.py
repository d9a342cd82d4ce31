"""Finds settings by words that a user looks for, also by other words than their names have."""

from __future__ import annotations

from typing import Final

from forecast_scheduler.settings.document import Settings, group_in
from forecast_scheduler.settings.known_keys import SHARED_BY, KnownKey, known_sections

_ALSO: Final = {
    "address": ("host", "url"),
    "auth": ("token", "client_ca", "kubernetes_auth"),
    "certificate": ("tls", "client_ca"),
    "certificates": ("tls", "client_ca"),
    "deadline": ("timeout",),
    "exclude": ("excluded", "left alone"),
    "excluded": ("left alone",),
    "ha": ("leader_election",),
    "https": ("tls",),
    "ignore": ("excluded", "left alone"),
    "interval": ("every",),
    "label": ("cluster", "matchers"),
    "leader": ("lease",),
    "lease": ("leader_election",),
    "limit": ("max_", "most"),
    "mtls": ("client_ca",),
    "namespace": ("excluded",),
    "oversubscription": ("colocation",),
    "period": ("every",),
    "quota": ("tenants",),
    "replicas": ("leader_election",),
    "secret": ("token", "private_key"),
    "thanos": ("prometheus",),
    "threshold": ("hot_share",),
    "timeout": ("deadline",),
    "tls": ("certificate",),
    "window": ("change_windows",),
}
"""Other words in names and descriptions, by the word that a user may look for."""


def matching_keys(words: list[str]) -> list[KnownKey]:
    """Return the keys that match every word: those with all of them in their names first, each as the page has them.

    A word matches in the name of a key, in its description or in that of its group, whether in capitals or not.
    """
    searched = [[word.lower(), *_ALSO.get(word.lower(), ())] for word in words]

    def matches(text: str) -> bool:
        return all(any(one in text.lower() for one in choices) for choices in searched)

    found = [
        key
        for section in known_sections()
        for key in section.keys
        if matches(f"{key.key} {key.meaning} {section.meaning} {_shared_keys(key.key)}")
    ]
    return sorted(found, key=lambda one: not matches(one.key))


def _shared_keys(key: str) -> str:
    """Return the names of the keys of a group that repeats a shared one; else nothing."""
    shared = SHARED_BY.get(key)
    group = None if shared is None else group_in(Settings.model_fields[shared].annotation)
    return "" if group is None else " ".join(group.model_fields)
