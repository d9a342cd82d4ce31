"""The measurements behind the figures in docs/understand/results.md; not part of the wheel."""
