"""The scheduling framework: queue, cache, cycle, gangs, preemption and binding, which the profiles are made of."""
