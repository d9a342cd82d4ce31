"""kube-scheduler's extender protocol v1: JSON <-> values. No I/O; docs/use/extender.md says what is answered when."""
