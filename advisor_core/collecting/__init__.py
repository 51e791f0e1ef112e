"""How to profile again: which options of which profiler answer what a profile could not answer, and what they cost."""
