"""What assistants may ask of profiles and reports, over the Model Context Protocol."""
