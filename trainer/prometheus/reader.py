"""Asks the queries of one day in pieces and in parallel; a piece the server finds too large is halved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace

from trainer.prometheus.http_answer import TooManySamples
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.queries import fill
from trainer.prometheus.query_times import Chunk, DayGrid, chunks, halves


@dataclass(frozen=True, slots=True)
class Question:
    """One query over ticks first..last.

    name    : in the settings
    per_pod : series per pod at most (containers for the gauge of the kubelet); 0 = a node query, not split by namespace
    """

    name: str
    template: str
    first: int
    last: int
    per_pod: int = 1

    @property
    def by_namespace(self) -> bool:
        return "{namespaces}" in self.template


@dataclass(frozen=True, slots=True)
class DayReader:
    """Reads one day. pods: number of pods per namespace; n_nodes: number of nodes; both only size the pieces."""

    connection: PrometheusConnection
    grid: DayGrid
    pods: Mapping[str, int]
    n_nodes: int
    max_samples: int
    parallel: int
    known: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict, repr=False)

    def ask(self, questions: Sequence[Question], done: Callable[[int, int], None]) -> list[list[Matrix]]:
        """The answers to each question, in the pieces they came in.

        done : called with the pieces read and the pieces there are
        """
        tasks = [(number, chunk) for number, question in enumerate(questions) for chunk in self._chunks(question)]
        answers: list[list[Matrix]] = [[] for _ in questions]
        done(0, len(tasks))
        with ThreadPoolExecutor(max_workers=self.parallel) as threads:
            futures = {threads.submit(self.matrices, questions[number], chunk): number for number, chunk in tasks}
            try:
                for count, future in enumerate(as_completed(futures), start=1):
                    answers[futures[future]] += future.result(0)
                    done(count, len(tasks))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        return answers

    def matrices(self, question: Question, chunk: Chunk) -> list[Matrix]:
        """One piece, in as many parts as the server makes us cut it into."""
        grid = self.grid
        query = self._fill(question.template, chunk)
        try:
            found = self.connection.range(
                question.name, query, grid.at(chunk.first), grid.at(chunk.last), grid.step_seconds
            )
        except TooManySamples as error:
            parts = halves(chunk, error, step_seconds=grid.step_seconds, by_namespace=question.by_namespace)
            return [matrix for part in parts for matrix in self.matrices(question, part)]
        return [replace(found, labels=tuple(map(self._known, found.labels)), tick=found.tick + chunk.first)]

    def _known(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """The labels of a pod as an answer before had them: every query names the same pods."""
        if labels.keys() != {"namespace", "pod"}:
            return labels
        return self.known.setdefault((labels["namespace"], labels["pod"]), labels)

    def facts(self, name: str, template: str, tick: int | None = None) -> list[Matrix]:
        """What a query answers at a tick; None = at the end of the day, or of what there is of it."""
        last = self.grid.n_ticks - 1 if tick is None else tick
        whole = [Chunk(last, last, tuple(sorted(self.pods)))]
        if "{namespaces}" in template:
            whole = chunks(self.pods, last, last, max_samples=self.max_samples) or whole
        return [matrix for chunk in whole for matrix in self._facts(name, template, chunk)]

    def _facts(self, name: str, template: str, chunk: Chunk) -> list[Matrix]:
        try:
            return [self.connection.instant(name, self._fill(template, chunk), self.grid.at(chunk.last))]
        except TooManySamples as error:
            parts = halves(chunk, error, step_seconds=1, by_namespace="{namespaces}" in template)
            return [matrix for part in parts for matrix in self._facts(name, template, part)]

    def _fill(self, template: str, chunk: Chunk) -> str:
        return fill(
            template,
            window_seconds=self.grid.step_seconds,
            namespaces=chunk.regex,
            day_seconds=self.grid.seconds,
        )

    def _chunks(self, question: Question) -> list[Chunk]:
        sizes = {name: count * question.per_pod for name, count in self.pods.items()}
        if question.per_pod == 0:
            sizes = {"": self.n_nodes}
        return chunks(
            sizes,
            question.first,
            question.last,
            max_samples=self.max_samples,
            by_namespace=question.by_namespace and question.per_pod > 0,
        )
