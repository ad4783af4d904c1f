"""from-text.py TEST OUT.onnx: writes the model that a test states in ONNX's text syntax.

The model is made of the lines of TEST that begin with `// ONNX:`. Initializers and attributes of the text
end up as typed fields; --raw stores initializers as raw bytes.
"""

import sys

import onnx.parser
from onnx import numpy_helper

source, out = sys.argv[1:3]
with open(source) as lines:
    text = "".join(line.split("ONNX:", 1)[1] for line in lines if line.startswith("// ONNX:"))
model = onnx.parser.parse_model(text)
if "--raw" in sys.argv:
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
with open(out, "wb") as file:
    file.write(model.SerializeToString())
