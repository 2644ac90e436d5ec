"""What the program's own interpreter loads: nothing in here may import anything but the standard library and torch.

The folder is put on PYTHONPATH, so that the `sitecustomize` in it runs in every Python that the command starts,
whichever that is: code in here keeps to Python 3.8, and `sitecustomize.py` to what Python 2.7 can still read.
"""
