"""Virtual nodes, behind which providers run pods by themselves: who may go there, how many, and what if none starts."""
