"""Dumps of PyTorch's flight recorder: pickles and JSON, of torch 2.2 and later."""
