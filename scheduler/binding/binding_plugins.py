"""The plugins of a profile that binding calls, and how: what one raises fails the pod, never the scheduler."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.plugins import Bind, PostBind, PreBind, Reserve
from placement.status import SUCCESS, Code, Status
from scheduler.binding.outcome import Reserved

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BindingPlugins:
    """In the order they are called; `reserve` in reverse, to undo."""

    bind: tuple[Bind, ...]
    reserve: tuple[Reserve, ...] = ()
    pre_bind: tuple[PreBind, ...] = ()
    post_bind: tuple[PostBind, ...] = ()


def pre_bind_of(plugins: BindingPlugins, reserved: Reserved) -> list[PreBind]:
    """Those that have something to do for the pod."""
    return [plugin for plugin in plugins.pre_bind if _concerns(plugin, reserved)]


async def await_pre_bind(plugins: Sequence[PreBind], reserved: Reserved) -> Status:
    """Success, or the first no."""
    for plugin in plugins:
        try:
            status = signed(await plugin.pre_bind(reserved.pod, reserved.node), plugin.name)
        except Exception as error:
            status = _failed(plugin.name, error)
        if not status.is_success:
            return status
    return SUCCESS


def unreserve(plugins: BindingPlugins, reserved: Reserved) -> None:
    """Release what was reserved, the last plugin first."""
    for plugin in reversed(plugins.reserve):
        try:
            plugin.unreserve(reserved.pod, reserved.node)
        except Exception:
            logger.exception("a plugin failed to release its reservation", extra={"plugin": plugin.name})


def tell_post_bind(plugins: BindingPlugins, reserved: Reserved) -> None:
    """It is bound."""
    for plugin in plugins.post_bind:
        try:
            plugin.post_bind(reserved.pod, reserved.node)
        except Exception:
            logger.exception("a plugin failed after a binding", extra={"plugin": plugin.name})


def _failed(plugin: str, error: Exception) -> Status:
    logger.error("a plugin failed", extra={"plugin": plugin}, exc_info=error)
    return Status(Code.ERROR, plugin, f"plugin {plugin} failed: {type(error).__name__}")


def _concerns(plugin: PreBind, reserved: Reserved) -> bool:
    try:
        return plugin.concerns(reserved.pod)
    except Exception:
        return True  # it will fail again where that fails the pod


def signed(status: Status, plugin: str) -> Status:
    """With the name of who says it."""
    return status if status.plugin else replace(status, plugin=plugin)
