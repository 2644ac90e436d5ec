"""What recording costs inside the program that is recorded."""
