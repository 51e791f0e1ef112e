"""Pages of docs/reference/, a module per page or kind of page."""
