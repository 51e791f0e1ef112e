"""Programs that nobody here wrote: which of their computations are found, and named rightly."""
