"""Facts of the work of the device: kernels, pipes, shapes, the chip."""
