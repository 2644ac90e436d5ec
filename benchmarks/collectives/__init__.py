"""How good the times of collectives are, against measured points."""
