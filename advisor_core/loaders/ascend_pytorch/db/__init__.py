"""The same exports as databases."""
