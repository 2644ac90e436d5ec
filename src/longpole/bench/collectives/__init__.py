"""`longpole bench collectives`: what collectives take on this machine, by kind, size and setting."""
