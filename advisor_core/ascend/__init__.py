"""The plugin of Ascend: the words of its exports, its loaders, and how to record with its profilers."""
