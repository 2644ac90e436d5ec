"""Record an unmodified PyTorch program: the launcher's side, and in `injected` what runs in the program."""
