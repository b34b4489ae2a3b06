"""One regression, fitted to real and to synthetic records and compared."""
