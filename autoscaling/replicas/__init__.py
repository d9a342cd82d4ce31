"""How many replicas will be needed shortly: the load that is expected N minutes ahead, for HPA and KEDA."""
