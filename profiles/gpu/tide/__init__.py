"""Inference and training on the same GPUs: training fills what inference is predicted to leave, and is gone in time.

GPU pods, nodes --gpu_holders.py------> what each pool has, and who holds it
model           --expected.py---> replicas that inference will have    --demand.py--> GPUs needed ahead, per pool
workloads       --workload_reader.py----> what training has, may have, and how long it takes to drain
                                    | tide_plan.py: how much training there may be now, and in the hours ahead
                                    | tide_report.py: why
tide_controller.py <---------------------'
    |--scaling.py--> replicas of the workloads            tide_filter.py <-- which training pods may be placed meanwhile
"""
