"""The measurements behind the figures in docs/understand/benchmarks.md; not part of the wheel."""
