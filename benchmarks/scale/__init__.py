"""How the graph grows: with ranks, with collectives, with device spans."""
