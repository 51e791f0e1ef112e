"""Rule files: reading, checking, the schema."""
