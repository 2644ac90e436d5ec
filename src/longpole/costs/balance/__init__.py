"""Divide sequences of unequal length over ranks, so that the last rank to finish finishes as early as it can.

All ranks wait for the slowest at the end of a step, so a step takes what the largest load takes: the sum of a rank's
costs over its speed. To make that as small as it can be is a scheduling problem (P||Cmax, Q||Cmax with speeds) that
nobody solves exactly at size; good methods come within parts of a thousand.
"""
