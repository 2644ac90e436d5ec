"""What moving and computing cost: pure functions of sizes and rates, one family a file."""
