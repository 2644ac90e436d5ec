"""`longpole bench …`: measure, compare and gate."""
