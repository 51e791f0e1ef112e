"""The script that checks a machine before it is profiled; it runs there, where nothing of this package is."""
