"""Nodes whose pods hold more than there is: found, counted once, and repaired by evicting our newest pods."""
