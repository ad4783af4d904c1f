"""Seeded weights whose scale keeps activations of order one through a deep network.

Each tensor has its own generator, seeded by the model's seed and the tensor's name: adding or
reordering tensors changes no other tensor.
"""

import zlib

import numpy as np


class Weights:
    def __init__(self, seed: int):
        self.seed = seed

    def _rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def normal(self, name: str, shape, std: float, mean: float = 0.0) -> np.ndarray:
        values = self._rng(name).standard_normal(tuple(shape), dtype=np.float32)
        values *= np.float32(std)
        if mean:
            values += np.float32(mean)
        return values

    def uniform(self, name: str, shape, low: float, high: float) -> np.ndarray:
        values = self._rng(name).random(tuple(shape), dtype=np.float32)
        return (values * np.float32(high - low) + np.float32(low)).astype(np.float32)

    def he(self, name: str, shape, fan_in: int, gain: float = 2.0) -> np.ndarray:
        """Normal with variance gain / fan_in; gain 2 makes up for the half that a Relu drops (He et al., 2015)."""
        return self.normal(name, shape, (gain / max(1, fan_in)) ** 0.5)
