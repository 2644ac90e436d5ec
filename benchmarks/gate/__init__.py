"""How good the gate is: by simulation with its own rule, and with a real command on a real machine."""
