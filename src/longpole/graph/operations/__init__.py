"""What waited for what in a job whose operations were timed one by one: program order, and who runs together."""
