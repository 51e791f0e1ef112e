"""Chains of small kernels that one fused kernel replaces: patterns, data flow through tensors, and the chains found."""
