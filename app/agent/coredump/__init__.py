"""A CUDA coredump: asked for once, watched to its end."""
