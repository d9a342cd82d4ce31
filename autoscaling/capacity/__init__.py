"""The fewest nodes that keep a recorded window cool, by placement rule.

node_pool    which nodes a cluster of n nodes has, and the recording on them
trial        a recording on n nodes, placed by a rule: hot share, requests that fit nowhere
failure      the same when nodes are lost in the busiest hour
fewest       the search over n, without any idea of what it searches
hours        nodes that the load of each hour of the day would need
sample       some services that stand for a large cluster
search       what one rule needs
capacity     all of it together, as figures
"""
