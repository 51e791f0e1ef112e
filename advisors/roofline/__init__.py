"""What kernels compute and move, what they need for it at least, and what bounds the step, its passes and layers."""
