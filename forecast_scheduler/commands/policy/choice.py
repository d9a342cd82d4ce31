"""Which policy places a pod, as the commands that look at single pods ask it: the document is read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from forecast_scheduler.commands.policy.reading import in_place, read_in_place
from forecast_scheduler.settings.document import Settings
from kube.objects.objects import PodInfo
from placement.policies.policy import Chosen

LabelsOf = Callable[[str], Mapping[str, str] | None]
Choose = Callable[[PodInfo, LabelsOf], Chosen]


def open_choice(where: str | None, settings: Settings, kubeconfig: Path | None, *, has_server: bool) -> Choose | None:
    """Return the function that chooses a pod's policy; None = no policies are named, and the settings place all pods.

    where      : a file, or configmap:NAMESPACE/NAME; None = as in the settings
    has_server : whether to look for the settings' ConfigMap

    Raises InputError for a document that cannot be read or would not take effect.
    """
    if where is None:
        where = in_place(settings, has_server=has_server)
    return None if where is None else read_in_place(where, settings, kubeconfig).policies.choose
