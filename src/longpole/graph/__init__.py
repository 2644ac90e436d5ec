"""What waited for what: the points of a rank, the edges between them, the sweep over them, the path through them."""
