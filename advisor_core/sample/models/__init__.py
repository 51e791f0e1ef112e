"""What a model computes: its layers as operators and kernels, forward and backward."""
