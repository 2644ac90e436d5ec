"""FLOPs and bytes of single operators from their recorded shapes: pure functions, one family a file."""
