"""How close together what belongs together is: members of a gang over nodes, cards of a pod within one."""
