"""What the kernels of a step compute, in words that hold for the devices of any vendor."""
