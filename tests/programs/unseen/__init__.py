"""Programs that were recorded to be judged before anybody had looked at them (docs/programs.md)."""
