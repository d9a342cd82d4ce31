"""Nodes where more is requested than there is: found, counted once, and repaired by evicting our newest pods."""
