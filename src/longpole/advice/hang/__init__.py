"""Which rank holds up a job that does not go on."""
