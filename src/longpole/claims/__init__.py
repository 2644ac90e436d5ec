"""Statements about a run held against each other: which contradict which, by how much, and what would make them true.

Nearly every relation between such figures is a product (devices = tp · pp · cp · dp, MFU = tokens/s · FLOPs per token /
(devices · peak)). So a figure that was not stated is a product of powers of those that were, a contradiction is a
product that should be 1 and is not, and what repairs it is found by looking at its exponents.
"""

from longpole.claims.audit import audit
from longpole.claims.statement import Claims, Statement, read_claims

__all__ = ["Claims", "Statement", "audit", "read_claims"]
