"""Many schedulers on one cluster: who owns which node, and who places which pods."""
