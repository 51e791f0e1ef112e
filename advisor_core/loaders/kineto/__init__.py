"""Loader of PyTorch (Kineto) traces, ``*.pt.trace.json[.gz]``, of CUDA and ROCm devices."""
