"""One rule of the graph a file: what it looks for, how sure it is, and the edges it finds."""
