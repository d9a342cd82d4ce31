"""How close together what belongs together is: members of a gang over nodes, cards and CPUs of a pod within one."""
