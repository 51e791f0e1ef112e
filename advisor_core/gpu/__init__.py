"""The words of GPUs, as PyTorch's profiler records them."""
