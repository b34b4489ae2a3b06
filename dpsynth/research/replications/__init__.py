"""Published studies run again: on real records, on synthetic ones, and with declared private estimates."""
