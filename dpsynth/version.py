"""The version of the package, which stands nowhere else."""

__version__ = "0.1.0"
