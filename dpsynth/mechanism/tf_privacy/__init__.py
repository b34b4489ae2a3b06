"""This package's mechanisms in the clothes of TensorFlow Privacy, for loops written against its interfaces.

A file a mechanism: `bounded_sum` is the critic's sum as a ``DPQuery``. Nothing else in the package imports
this folder, and all of it but `base` loads TensorFlow.
"""
