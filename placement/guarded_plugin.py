"""Calls plugins of others: one that raises, is late or answers with nonsense is reported, and skipped or fails the pod.

    filter, score   a thread of the plugin; the cycle waits for it, with the tables locked
    pre_bind        a thread for each pod; the event loop waits
    post_bind       a thread of the plugin; the thread of the results waits

Python cannot end a thread: a call that hangs stays in its thread, and until it is back further calls fail at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

import numpy as np
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from base.arrays import Bools, Ints
from base.errors import ForecastError
from kube.objects.objects import PodInfo
from placement.cluster_events import NODE_EVENTS, ClusterEvent, Hint
from placement.filters.filter import ClusterView, Filter, Rejection
from placement.filters.rejections import found
from placement.node_plugin import NodeArrays, NodePlugin
from placement.policies.policy import Policy
from placement.scores.default_scores import POINT_VALUE
from placement.scores.node_score import MAX_NODE_SCORE, NodeScore
from placement.status import SUCCESS, Code, Status

logger = logging.getLogger(__name__)

_LOG_SECONDS: Final = 60.0
_MOST_AT_ONCE: Final = 64
"""Calls of pre_bind; more wait for a place."""
_PLACE_SECONDS: Final = 60.0
_LATELY_SECONDS: Final = 60.0

T = TypeVar("T")


class PluginFailed(ForecastError):
    """A call of a plugin failed, and the plugin says that then the pod fails. The message is for people."""


class _Reply(Generic[T]):
    """What a call came to, once `done` is set."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.work, self.done = work, threading.Event()
        self.value: T | None = None
        self.error: BaseException | None = None


class _Worker:
    """One thread for the calls of one plugin, made when it is first needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[_Reply[Any]] = SimpleQueue()
        self._free, self._is_late, self._has_thread = threading.Semaphore(), False, False

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """Return what the work returns, and raise what it raises. Raises TimeoutError if it takes longer."""
        if not self._free.acquire(timeout=0.0 if self._is_late else seconds):
            raise TimeoutError("an earlier call has not returned yet")
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        reply = _Reply(work)
        self._calls.put(reply)
        if not reply.done.wait(seconds):
            self._is_late = True
            raise TimeoutError(f"no answer within {seconds:g} s")
        if reply.error is not None:
            raise reply.error
        return reply.value  # type: ignore[return-value]

    def _run(self) -> None:
        while True:
            reply = self._calls.get()
            try:
                reply.value = reply.work()
            except Exception as error:
                reply.error = error
            except BaseException as error:  # such as SystemExit: it must not end the thread that asked
                reply.error = RuntimeError(f"it raised {type(error).__name__}")
            self._is_late = False
            self._free.release()
            reply.done.set()


class GuardedPlugin:
    """One plugin of the process.

    filter, score   : None = it has none
    pre_bind        : the same; implements PreBind, as `post_bind` implements PostBind
    failures        : calls that failed, by extension point and kind: raised, late, nonsense
    """

    def __init__(self, plugin: NodePlugin, clock: Callable[[], float] = time.monotonic) -> None:
        self.plugin, self.name = plugin, plugin.name
        self.failures: Counter[tuple[str, str]] = Counter()
        self._clock, self._logged = clock, dict[tuple[str, str], float]()
        self._last = (-math.inf, "")
        self._worker, self._after = _Worker(f"plugin-{self.name}"), _Worker(f"plugin-{self.name}-post-bind")
        points = points_of_plugin(type(plugin))
        self.filter = PluginFilter(self) if "filter" in points else None
        self.score = PluginScore(self) if "score" in points else None
        self.pre_bind = PluginPreBind(self) if "pre_bind" in points else None
        self.post_bind = PluginPostBind(self) if "post_bind" in points else None

    def ask_about_nodes(self, point: str, pod: PodInfo, view: ClusterView, rows: Ints) -> Any:
        """Return an array over the rows. Raises PluginFailed, whatever the plugin says of errors."""
        nodes = NodeArrays(pod, view, rows)
        method = getattr(self.plugin, point)
        try:
            answer = self._worker.call(partial(method, pod, nodes), self.plugin.seconds)
            if mistake := _mistake(point, answer, len(rows)):
                raise self.failed(point, "nonsense", mistake)
        except PluginFailed:
            raise
        except TimeoutError as error:
            raise self.failed(point, "late", str(error)) from error
        except Exception as error:
            raise self.failed(point, "raised", f"{type(error).__name__}: {error}", error) from error
        finally:
            nodes.close()
        return answer

    def notify(self, pod: PodInfo, node: str) -> None:
        """Call post_bind. Raises what it raises."""
        self._after.call(partial(self.plugin.post_bind, pod, node), self.plugin.binding_seconds)

    def failed(self, point: str, kind: str, why: str, error: BaseException | None = None) -> PluginFailed:
        """Count and log a call that failed, each kind once a minute; return it as an error to raise."""
        self.failures[point, kind] += 1
        now, failure = self._clock(), PluginFailed(f"plugin {self.name} failed in {point}: {why}")
        self._last = now, str(failure)
        if now - self._logged.get((point, kind), -_LOG_SECONDS) >= _LOG_SECONDS:
            self._logged[point, kind] = now
            facts = {"plugin": self.name, "point": point, "on_error": self.plugin.on_error}
            logger.error("%s", failure, extra=facts, exc_info=error)
        return failure

    def trouble(self) -> str:
        """Return the last failure if pods went on without it within the last minute; '' = none did."""
        at, failure = self._last
        return failure if self.is_skipped_on_error and self._clock() - at < _LATELY_SECONDS else ""

    @property
    def is_skipped_on_error(self) -> bool:
        """Whether pods go on without it after a call that failed."""
        return self.plugin.on_error == "skip"


def points_of_plugin(plugin: type[NodePlugin]) -> tuple[str, ...]:
    """Return the extension points that a plugin has: what it overrides."""
    points = ("filter", "score", "pre_bind", "post_bind")
    return tuple(point for point in points if getattr(plugin, point) is not getattr(NodePlugin, point))


class PluginFilter(Filter):
    """The filter of a plugin."""

    def __init__(self, guard: GuardedPlugin) -> None:
        self.name, self._guard, self._nodes_only = guard.name, guard, guard.plugin.reads_nodes_only
        self._reason = guard.plugin.reason or f"node(s) were rejected by plugin {guard.name}"
        self._has_failed = False
        if self._nodes_only and guard.is_skipped_on_error:
            self.woken_by = NODE_EVENTS

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Where the plugin fails: every node, with the error as reason, or none."""
        rows = np.flatnonzero(view.state.alive)
        nodes = np.zeros(view.n_rows, dtype=bool)
        try:
            nodes[rows] = ~self._guard.ask_about_nodes("filter", pod, view, rows)
            self._has_failed = False
        except PluginFailed as failure:
            self._has_failed = True
            if self._guard.is_skipped_on_error:
                return ()
            return found(~nodes, view, str(failure), preemptible=False, about_pod=True)
        return found(nodes, view, self._reason, preemptible=not self._nodes_only)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A failure passes by itself: any event is worth another attempt."""
        return Hint.of(self._has_failed or not self._nodes_only or event.kind in NODE_EVENTS)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        return None if self._nodes_only else pod.uid

    def trouble(self) -> str:
        return self._guard.trouble()

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return self._nodes_only

    def needs_company(self, pod: PodInfo, view: ClusterView) -> bool:
        return not self._nodes_only


class PluginScore(NodeScore):
    """The score of a plugin."""

    def __init__(self, guard: GuardedPlugin) -> None:
        self.name, self._guard = guard.name, guard

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Whole numbers. Where the plugin fails and is skipped, 0 for all. Raises PluginFailed."""
        try:
            return np.asarray(np.rint(self._guard.ask_about_nodes("score", pod, view, rows)), dtype=np.int64)
        except PluginFailed:
            if self._guard.is_skipped_on_error:
                return np.zeros(len(rows), dtype=np.int64)
            raise

    def trouble(self) -> str:
        return self._guard.trouble()

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return self._guard.plugin.reads_nodes_only


class PluginPreBind:
    """Implements PreBind."""

    def __init__(self, guard: GuardedPlugin) -> None:
        self.name, self._guard, self._places = guard.name, guard, asyncio.Semaphore(_MOST_AT_ONCE)

    def concerns(self, pod: PodInfo) -> bool:
        return True

    async def pre_bind(self, pod: PodInfo, node: str) -> Status:
        guard = self._guard
        try:
            # Given back when the call returns, though nothing may wait for that any more.
            await asyncio.wait_for(self._places.acquire(), _PLACE_SECONDS)
            why = await asyncio.wait_for(self._call(pod, node), guard.plugin.binding_seconds)
            if not isinstance(why, str):
                raise guard.failed("pre_bind", "nonsense", f"it returned {why!r}, return '' or a reason")
        except PluginFailed as failure:
            return self._after(failure)
        except TimeoutError as error:
            late = str(error) or f"no answer within {guard.plugin.binding_seconds:g} s"
            return self._after(guard.failed("pre_bind", "late", late))
        except Exception as error:
            return self._after(guard.failed("pre_bind", "raised", f"{type(error).__name__}: {error}", error))
        return Status(Code.UNSCHEDULABLE, self.name, f"plugin {self.name}: {why}") if why else SUCCESS

    def _after(self, failure: PluginFailed) -> Status:
        return SUCCESS if self._guard.is_skipped_on_error else Status(Code.ERROR, self.name, str(failure))

    def _call(self, pod: PodInfo, node: str) -> asyncio.Future[str]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()

        def settle(value: str | None, error: Exception | None) -> None:
            self._places.release()
            if future.done():  # nothing waits for it any more
                return
            if error is None:
                future.set_result(value)  # type: ignore[arg-type]
            else:
                future.set_exception(error)

        def work() -> None:
            value: str | None = None
            failure: Exception | None = None
            try:
                value = self._guard.plugin.pre_bind(pod, node)
            except Exception as error:
                failure = error
            except BaseException as error:
                failure = RuntimeError(f"it raised {type(error).__name__}")
            with suppress(RuntimeError):  # the process ends: its loop is closed
                loop.call_soon_threadsafe(settle, value, failure)

        # Of its own: threads of a pool are waited for when the process ends, and this one may hang.
        threading.Thread(target=work, name=f"plugin-{self.name}-pre-bind", daemon=True).start()
        return future


class PluginPostBind:
    """Implements PostBind."""

    def __init__(self, guard: GuardedPlugin) -> None:
        self.name, self._guard = guard.name, guard

    def post_bind(self, pod: PodInfo, node: str) -> None:
        try:
            self._guard.notify(pod, node)
        except TimeoutError as error:
            self._guard.failed("post_bind", "late", str(error))
        except Exception as error:
            self._guard.failed("post_bind", "raised", f"{type(error).__name__}: {error}", error)


def plugin_points(
    scores: Iterable[tuple[NodeScore, int]],
    pod: PodInfo,
    view: ClusterView,
    rows: Ints,
    policy: Policy,
    extender_weight: int,
) -> Iterator[tuple[str, int, Ints]]:
    """Name, weight and points of the extender protocol of each score that counts: (n_nodes,) such that kube-scheduler
    adds what our own loops add. A score that fails gives no points: it has been reported, and the pod is placed.

    scores : with their weights, of which a policy may say otherwise
    rows   : (n_nodes,), -1 = not known, which gets no points
    """
    known = rows >= 0
    for score, default in scores:
        weight = int(policy.plugin_weights.get(score.name, default))
        points = np.zeros(len(rows), dtype=np.int64)
        try:
            if weight and known.any():
                raw = weight * score.score(pod, view, rows[known])
                points[known] = np.rint(raw / (POINT_VALUE * extender_weight)).astype(np.int64)
        except PluginFailed:
            continue
        if weight:
            yield score.name, weight, points


class PluginCollector(Collector):
    """Exports what became of the calls of plugins."""

    def __init__(self, plugins: Iterable[GuardedPlugin]) -> None:
        self._plugins = tuple(plugins)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """See Collector."""
        family = CounterMetricFamily(
            "forecast_plugin_failures",
            "Calls of plugins of other packages that failed, by kind: raised, late, or nonsense as the answer.",
            labels=("plugin", "point", "kind"),
        )
        for one in self._plugins:
            for (point, kind), n in sorted(one.failures.items()):
                family.add_metric((one.name, point, kind), n)
        yield family


def _mistake(point: str, answer: object, n_nodes: int) -> str:
    """What is wrong with an array, '' = nothing."""
    wanted = f"({n_nodes},) {'bool' if point == 'filter' else 'numbers 0..100'}"
    if not isinstance(answer, np.ndarray):
        return f"it returned {type(answer).__name__}, wanted an array {wanted}"
    is_kind = answer.dtype.kind == "b" if point == "filter" else answer.dtype.kind in "iuf"
    if answer.shape != (n_nodes,) or not is_kind:
        return f"it returned an array {answer.shape} of {answer.dtype}, wanted {wanted}"
    if point == "score" and n_nodes and not (np.isfinite(answer).all() and answer.min() >= 0 and _is_low(answer)):
        return f"it returned scores outside 0..{MAX_NODE_SCORE}, or NaN"
    return ""


def _is_low(answer: Bools | Ints) -> bool:
    return bool(answer.max() <= MAX_NODE_SCORE)
