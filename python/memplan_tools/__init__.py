"""Compiles models with memplan-opt, builds and runs what it emits on the host, and compares with ONNX Runtime.

Used by the tests, the demo and the bundle writer; see compiler, host, reference and compare.
"""

from pathlib import Path

#: the repository's root
ROOT = Path(__file__).resolve().parents[2]
