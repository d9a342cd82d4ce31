"""Did past moves help as predicted, and may the rebalancer go on?"""
