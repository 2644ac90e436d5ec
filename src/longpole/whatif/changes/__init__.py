"""How each change alters the graph: one change a file, a function from a draft and a change to the altered draft."""
