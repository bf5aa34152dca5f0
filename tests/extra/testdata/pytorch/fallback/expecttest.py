"""What torch.testing needs of the package expecttest where that is not installed."""

from unittest import TestCase

ACCEPT = False

__all__ = ["ACCEPT", "TestCase"]
