"""Call stacks: where the time of the host and of the device went, by who called whom."""
