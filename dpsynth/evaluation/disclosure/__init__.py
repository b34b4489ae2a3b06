"""What a synthetic table gives away about the records it was made from."""
