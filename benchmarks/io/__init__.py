"""How good the laws of `longpole bench io` are: whole powers of ten held out and predicted."""
