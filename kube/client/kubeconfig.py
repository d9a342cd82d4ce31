"""What a kubeconfig says, as kubectl reads it: which contexts there are, and where the server of one is.

Several files are separated as in $KUBECONFIG and count as one; of what two of them define, the first counts. Source:
https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/#merging-kubeconfig-files
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import ENV_KUBECONFIG_PATH_SEPARATOR, KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigMerger

from base.errors import InputError


def kubectls_own(why: str = "") -> str:
    """Return the files that kubectl reads without arguments. Raises InputError: there is none of them.

    why : they are asked for, as the beginning of that error
    """
    location = KUBE_CONFIG_DEFAULT_LOCATION or "~/.kube/config"  # as kubectl takes an empty $KUBECONFIG
    if not any(Path(file).expanduser().is_file() for file in location.split(ENV_KUBECONFIG_PATH_SEPARATOR)):
        raise InputError(
            f"{why}there is no $KUBECONFIG and no ~/.kube/config: name a kubeconfig with --kubeconfig, or give the "
            "cluster as a file with --cluster"
        )
    return location


def context_names(kubeconfig: Path | str) -> tuple[str, ...]:
    """Return the names of its contexts, in its order. Raises InputError."""
    with _translated_errors(kubeconfig):
        return tuple(str(one["name"]) for one in _merged(kubeconfig).config["contexts"].value)


def current_context(kubeconfig: Path | str) -> str | None:
    """Return the name of the current context; None = it has none. Raises InputError."""
    with _translated_errors(kubeconfig):
        # The client would take the last file's.
        files = _merged(kubeconfig).config_files.values()
        return next((str(one["current-context"]) for one in files if one.get("current-context")), None)


def load_context(kubeconfig: Path | str, context: str | None, configuration: client.Configuration) -> None:
    """Fill a client's configuration. context: None = the current one. Raises InputError."""
    if context is not None and context not in (known := context_names(kubeconfig)):
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise InputError(f"kubeconfig {kubeconfig} has no context {context!r}: {has}")
    with _translated_errors(kubeconfig):
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig),
            context=context or current_context(kubeconfig),
            client_configuration=configuration,
            persist_config=False,
        )


def _merged(kubeconfig: Path | str) -> KubeConfigMerger:
    if isinstance(kubeconfig, Path) and not kubeconfig.is_file():
        raise InputError(
            f"there is no kubeconfig {kubeconfig}: name another one, or leave --kubeconfig out inside a cluster"
        )
    return KubeConfigMerger(str(kubeconfig))  # type: ignore[no-untyped-call]


@contextmanager
def _translated_errors(kubeconfig: Path | str) -> Iterator[None]:
    """Raise InputError in place of what the client and its libraries raise."""
    try:
        yield
    except InputError:
        raise
    except ConfigException as error:
        raise InputError(
            f"kubeconfig {kubeconfig} cannot be used ({_one_line(error)}): `kubectl --kubeconfig {kubeconfig} config "
            "get-contexts` shows what it has, `kubectl config use-context` sets the current one"
        ) from error
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        # The client's loader lets through whatever its YAML library and its own look-ups raise.
        raise InputError(f"kubeconfig {kubeconfig} cannot be read: {_one_line(error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        raise InputError(f"kubeconfig {kubeconfig} is not YAML: {_one_line(error)}") from error


def _one_line(error: Any) -> str:
    return " ".join(str(error).split())[:300]
