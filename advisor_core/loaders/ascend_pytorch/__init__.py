"""Exports of the Ascend PyTorch Profiler and of MindSpore."""
