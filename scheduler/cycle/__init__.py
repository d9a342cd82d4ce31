"""The scheduling cycle: from pods of one unit to the nodes they are assumed on, in memory."""
