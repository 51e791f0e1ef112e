"""Find plugins, keep what they register, and isolate their crashes."""
