"""Measure commands, steps and the paths of this machine, and compare what was measured."""
