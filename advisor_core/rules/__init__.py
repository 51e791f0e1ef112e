"""Rules: strict YAML, the condition language, texts with placeholders, and the judgement of measured rows."""
