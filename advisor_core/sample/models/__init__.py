"""The computation of a model: its layers as operators and kernels, forward and backward."""
