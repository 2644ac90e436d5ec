"""The recorder's door: `from longpole import record`, then `with record.unit(step):` in the loop."""
