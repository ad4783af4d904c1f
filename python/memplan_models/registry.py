"""All models by name."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Callable

import onnx

from . import cnn, dense_prediction, light, mobile, modern, published, random_wired, transformer
from .store import save


@dataclass(frozen=True)
class Entry:
    name: str
    about: str
    build: Callable[[int], onnx.ModelProto]
    #: values for the symbolic dims that demos and tests use
    dims: dict[str, int] = field(default_factory=dict)


#: an architecture at its published size, the same small enough to be run in any test, and the dims of both
ARCHITECTURES = (
    (mobile.mobilenet_v2, mobile.mobilenet_v2_small, {"N": 1}, {"N": 2}),
    (mobile.efficientnet_b0, mobile.efficientnet_b0_small, {"N": 1}, {"N": 2}),
    (dense_prediction.unet, dense_prediction.unet_small, {"N": 1}, {"N": 2}),
    (dense_prediction.yolo, dense_prediction.yolo_small, {"N": 1}, {"N": 2}),
    (random_wired.randwire, random_wired.randwire_small, {"N": 1}, {"N": 2}),
    (published.bert_base, published.bert_small, {"N": 1, "S": 128}, {"N": 2, "S": 12}),
    (published.gpt2_step, published.gpt2_step_small, {"N": 1, "P": 512}, {"N": 2, "P": 9}),
    (published.vit_b16, published.vit_small, {"N": 1}, {"N": 2}),
)


def _entries():
    for build, dims in ((cnn.cnn_relu, {"N": 4}), (cnn.cnn_dropout, {"N": 4}),
                        (transformer.transformer_erf, {"N": 2, "S": 24}),
                        (transformer.transformer_tanh, {"N": 2, "S": 24}),
                        (modern.decoder_step, {"N": 2, "P": 9, "T": 12}), (modern.denoiser, {"N": 2})):
        yield Entry(build.__name__, build.__doc__, build, dims)
    for real, small, dims, small_dims in ARCHITECTURES:
        yield Entry(real.__name__, real.__doc__, real, dims)
        yield Entry(small.__name__, small.__doc__, small, small_dims)
    for short, file in light.FILES.items():
        yield Entry(short, f"{file} of the onnx package with seeded random weights", partial(light.randomised, short))
        yield Entry(f"light_{short}", f"{file} of the onnx package as shipped", lambda _, s=short: light.shipped(s))


_ENTRIES = {e.name: e for e in _entries()}
NAMES = tuple(_ENTRIES)


def entry(name: str) -> Entry:
    if name not in _ENTRIES:
        raise ValueError(f"no model is named {name!r}; there are {', '.join(NAMES)}")
    return _ENTRIES[name]


def write(name: str, folder, seed: int = 0, storage: str = "raw") -> Path:
    """Writes folder/name.onnx and returns its path."""
    return save(entry(name).build(seed), Path(folder) / f"{name}.onnx", storage)
