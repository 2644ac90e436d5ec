"""Measure the paths by which artifacts, state and output move on this machine: service time, exposed time, a model."""
