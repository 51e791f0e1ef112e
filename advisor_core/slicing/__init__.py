"""Parts of the recording around findings, as traces that viewers open."""
