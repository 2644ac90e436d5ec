"""Changes to the graph, the replay of what is left, and how far its answer may be believed."""
