"""What is known of Ascend: the words of its exports, its loaders, and how to record with its profilers, as a plugin."""
