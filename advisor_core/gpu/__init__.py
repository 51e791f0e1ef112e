"""The plugin of GPUs: the words of PyTorch (Kineto) traces of CUDA and ROCm, and the loader that reads them."""
