"""Reports to users about pods that wait and pods that got a node: conditions and events."""
