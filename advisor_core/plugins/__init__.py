"""Finding plugins, keeping what they register, and keeping their crashes apart."""
