"""Models that strangers wrote and put into Python packages: OCR, voice activity, file types, a detector.

Each is compiled with its shapes bound on the command line, run on the host build in checked mode, and compared with
ONNX Runtime on the same random inputs.
"""

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = [pytest.mark.usefixtures("memplan_opt"), pytest.mark.slow]


@dataclass
class Model:
    package: str
    file: str
    shapes: dict[str, tuple[int, ...]]
    #: inputs whose values aren't standard normal
    given: dict = field(default_factory=dict)
    #: checked mode takes ten times as long: one size of each model has it
    checked: bool = True

    @property
    def path(self) -> Path:
        return Path(importlib.util.find_spec(self.package).origin).parent / self.file

    def inputs(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(0)
        return {name: np.asarray(self.given[name](rng, shape) if name in self.given
                                 else rng.standard_normal(shape, dtype=np.float32))
                for name, shape in self.shapes.items()}


def image(rng, shape):
    return rng.random(shape, dtype=np.float32) * 2 - 1


def tokens(rng, shape):
    return rng.integers(0, 257, shape).astype(np.int32)


def rate(hertz: int):
    return lambda rng, shape: np.int64(hertz)


OCR = "rapidocr_onnxruntime"
VAD = {"input": (1, 576), "state": (2, 1, 128)}
MODELS = {
    **{f"ocr_detect_{h}x{w}": Model(OCR, "models/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, h, w)}, {"x": image}, h < 100)
       for h, w in ((96, 160), (160, 224), (320, 320))},
    **{f"ocr_read_{n}x{w}": Model(OCR, "models/ch_PP-OCRv4_rec_infer.onnx", {"x": (n, 3, 48, w)}, {"x": image}, w < 100)
       for n, w in ((1, 320), (3, 160), (1, 80))},
    **{f"ocr_turn_{n}": Model(OCR, "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (n, 3, 48, 192)}, {"x": image})
       for n in (1, 6)},
    "vad": Model("silero_vad", "data/silero_vad.onnx", {**VAD, "sr": ()}, {"sr": rate(16000)}),
    "vad_8k": Model("silero_vad", "data/silero_vad.onnx", {**VAD, "input": (1, 288), "sr": ()}, {"sr": rate(8000)}),
    "vad_batch": Model("silero_vad", "data/silero_vad.onnx", {"input": (4, 576), "state": (2, 4, 128), "sr": ()},
                       {"sr": rate(16000)}),
    "vad_op15": Model("silero_vad", "data/silero_vad_16k_op15.onnx", {**VAD, "sr": ()}, {"sr": rate(16000)}),
    "vad_half": Model("silero_vad", "data/silero_vad_half.onnx", VAD),
    "vad_op18": Model("silero_vad", "data/silero_vad_op18_ifless.onnx", {**VAD, "sr": ()}, {"sr": rate(16000)}),
    "vad_sequence": Model("silero_vad", "data/silero_vad_16k_sequence.onnx",
                          {"input": (5, 576), "h": (1, 1, 128), "c": (1, 1, 128)}),
    "vad_openvino": Model("silero_vad", "data/silero_vad_openvino_16k.onnx", VAD),
    "file_types": Model("magika", "models/standard_v3_3/model.onnx", {"bytes": (2, 2048)}, {"bytes": tokens}),
    "detector": Model("nudenet", "320n.onnx", {"images": (1, 3, 320, 320)}, {"images": image}),
}


def emit(model: Model, prefix: Path) -> None:
    shapes = [f for name, shape in model.shapes.items() if shape for f in ("--input-shape", f"{name}={'x'.join(map(str, shape))}")]
    compiler.emit_cuda(model.path, prefix, None, *shapes)


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_onnxruntime(name, tmp_path):
    model = MODELS[name]
    emit(model, tmp_path / "m")
    inputs = model.inputs()
    with host.HostModel(tmp_path / "m", checked=model.checked, flags=("-O1",)) as built:
        got = built.run({i.name.decode(): inputs[i.name.decode()] for i in built.inputs})
    assert_close(got, reference.run(model.path, inputs), relative=1e-3, absolute=1e-4)


def test_the_other_sampling_rate_is_refused_when_it_runs(tmp_path):
    """576 samples make sense at 16 kHz only: the branch for 8 kHz can't be built, and says so when it's taken."""
    model = MODELS["vad"]
    emit(model, tmp_path / "m")
    inputs = {**model.inputs(), "sr": np.asarray(np.int64(8000))}
    with host.HostModel(tmp_path / "m", checked=True, flags=("-O1",)) as built:
        with pytest.raises(host.HostError, match="status 1: .*else_branch.* is impossible for inputs of these shapes"):
            built.run(inputs)
