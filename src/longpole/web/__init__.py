"""One page and one endpoint on the loopback interface, for `longpole serve`."""
