"""The ONNX models that memplan is developed and tested with.

Every model is written by a seeded script, so that a file can be made again anywhere, byte for byte:

    python -m memplan_models build/models cnn_relu cnn_dropout
    python -m memplan_models --list

In a program, `write(name, folder)` makes one file and returns its path.
"""

from .registry import NAMES, Entry, entry, write
from .store import STORAGES, save

__all__ = ["NAMES", "STORAGES", "Entry", "entry", "save", "write"]
