"""The machine that runs a program: host threads, the task queue, streams and cores of a chip, memory, and links."""
