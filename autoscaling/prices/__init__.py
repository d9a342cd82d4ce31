"""What nodes cost, and what fewer of them, lower requests or moves are worth.

node_prices   the price of each node, from the first source that knows it; a month's cost
given_prices  prices that the user gives, by node group, instance type or labels: settings and `--price`
price_file    the same from a CSV file
opencost      prices of nodes as OpenCost reckons them
list_prices   public list prices by instance type, from a dated table in this folder
worth         what lower requests are worth, and which nodes moves would empty

The table is here and not in data/: what is not in a package is not in the wheel.
"""
