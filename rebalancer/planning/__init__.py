"""From predicted load, pods and budgets to ordered moves. Pure."""
