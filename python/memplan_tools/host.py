"""Builds emitted NAME.cu with an ordinary C++ compiler and calls it through its C API.

    model = HostModel("build/x/resnet50", "build/x/host")
    outputs = model.run({"data": array})
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from . import ROOT
from .compiler import identifier

RUNTIME_INCLUDE = ROOT / "include"
SHIM = Path(__file__).with_name("host_counters.cpp")

#: memplan_dtype of memplan/Runtime/Status.h; what numpy hasn't itself comes from ml_dtypes
DTYPES = {0: "float32", 1: "float64", 2: "float16", 3: "bfloat16", 4: "int8", 5: "int16", 6: "int32", 7: "int64",
          8: "uint8", 9: "uint16", 10: "uint32", 11: "uint64", 12: "bool", 13: "float8_e4m3fn",
          14: "float8_e4m3fnuz", 15: "float8_e5m2", 16: "float8_e5m2fnuz", 17: "float8_e8m0fnu", 18: "float4_e2m1fn",
          19: "int4", 20: "uint4", 21: "int2", 22: "uint2"}
#: bits of the types of which several elements share a byte, the first in its low bits
PACKED_BITS = {18: 4, 19: 4, 20: 4, 21: 2, 22: 2}


def numpy_dtype(name: str) -> np.dtype:
    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes
    return np.dtype(getattr(ml_dtypes, name))


def pack(array: np.ndarray, bits: int) -> np.ndarray:
    """The bytes of elements of 2 or 4 bits, each of which numpy keeps in a byte."""
    per_byte = 8 // bits
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & (2 ** bits - 1)
    codes = np.concatenate([codes, np.zeros(-codes.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    return np.bitwise_or.reduce(codes << np.arange(0, 8, bits, dtype=np.uint8), axis=1).astype(np.uint8)


def unpack(packed: np.ndarray, bits: int, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    codes = (packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & (2 ** bits - 1)
    codes = codes.reshape(-1)[:int(np.prod(shape, dtype=np.int64))].astype(np.uint8)
    if dtype.name.startswith("int"):  # numpy keeps them extended by their sign
        codes = ((codes << (8 - bits)).view(np.int8) >> (8 - bits)).view(np.uint8)
    return codes.view(dtype).reshape(shape)


class _TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class Counters(ctypes.Structure):
    """What the host runtime has done."""

    _fields_ = [(n, ctypes.c_int64) for n in ("allocations", "frees", "synchronisations", "launches")]

    def __repr__(self) -> str:
        return ", ".join(f"{n}={getattr(self, n)}" for n, _ in self._fields_)


class HostError(RuntimeError):
    pass


def _fingerprint(paths, words) -> str:
    digest = hashlib.sha256(repr(words).encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compiler_command(checked: bool, flags: tuple[str, ...]) -> list[str]:
    compiler = os.environ.get("CXX", "g++")
    command = [compiler, "-std=c++17", *flags, "-Wall", "-Wextra", "-Werror", "-fPIC", "-pthread",
               *(["-DMEMPLAN_CHECKED"] if checked else [])]
    if "clang" not in compiler:
        # Models of one process share no state: without this, static locals of inline functions would be merged.
        command.append("-fno-gnu-unique")
    return command


def _call(command: list[str], what: str):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise HostError(f"{what}:\n{done.stderr[:4000]}")


def precompile_runtime(folder, checked: bool = False, flags: tuple[str, ...] = ("-O2",)) -> None:
    """Precompiles the runtime's headers into `folder` for build_library(precompiled=folder): many small models
    then compile several times as fast."""
    header = Path(folder) / "memplan_runtime.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text('#include "memplan/Runtime/Runtime.h"\n')
    _call([*_compiler_command(checked, flags), f"-I{RUNTIME_INCLUDE}", "-x", "c++-header", str(header), "-o",
           f"{header}.gch"], "the host compiler refused the runtime's headers")


def build_library(prefix, folder, checked: bool = False, flags: tuple[str, ...] = ("-O2",), precompiled=None) -> Path:
    """Compiles prefix.cu to a shared library in `folder`, unless it's there and nothing it depends on has changed."""
    prefix, folder = Path(prefix), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"lib{prefix.name}{'_checked' if checked else ''}.so"
    stamp = library.with_suffix(".stamp")
    command = _compiler_command(checked, flags)
    sources = [prefix.with_name(prefix.name + ".cu"), SHIM]
    headers = sorted((RUNTIME_INCLUDE / "memplan/Runtime").rglob("*.h")) + [prefix.with_name(prefix.name + ".h")]
    mark = _fingerprint(sources + headers, command)
    if library.exists() and stamp.exists() and stamp.read_text() == mark:
        return library
    early = ["-include", str(Path(precompiled) / "memplan_runtime.h")] if precompiled else []
    _compile([*command, f"-I{prefix.parent}"], sources, library, early)
    stamp.write_text(mark)
    return library


def _compile(command: list[str], sources: list[Path], library: Path, early: list[str]) -> None:
    objects = []
    for source in sources:  # one by one, since ccache keeps only single compilations
        # The library's whole name, for a model's name may have dots.
        objects.append(library.with_name(f"{library.name}.{source.suffix[1:]}.o"))
        own = early if source != SHIM else []
        cache = ["ccache"] if shutil.which("ccache") and not own else []
        _call([*cache, *command, *own, f"-I{RUNTIME_INCLUDE}", "-c", "-x", "c++", str(source), "-o", str(objects[-1])],
              f"the host compiler refused {source}")
    _call([*command, "-shared", "-Wl,-Bsymbolic", *map(str, objects), "-o", str(library)], f"linking {library} failed")


def build_together(prefixes, library, checked: bool = False, flags: tuple[str, ...] = ("-O0",)) -> Path:
    """Compiles many small models as one file to one library, which takes a fraction of the time. Each model gets a
    namespace of its own; the functions of the C API keep their names, so those must differ."""
    library = Path(library)
    library.parent.mkdir(parents=True, exist_ok=True)
    text = ['#include "memplan/Runtime/Runtime.h"', "#include <new>"]
    for i, prefix in enumerate(prefixes):
        text += [f"namespace model{i} {{", f'#include "{Path(prefix).resolve()}.cu"', "}"]
    source = library.with_suffix(".cu")
    source.write_text("\n".join(text) + "\n")
    _compile(_compiler_command(checked, flags), [source, SHIM], library, [])
    return library


class HostModel:
    """A loaded model; `arena` and `weights` live in one block that the library allocates.

    `library`: one that build_together made; the other settings are without effect then.
    `weights`: what load gets as its path, if not prefix.safetensors."""

    def __init__(self, prefix, folder=None, checked: bool = False, flags: tuple[str, ...] = ("-O2",),
                 precompiled=None, library=None, weights=None):
        prefix = Path(prefix)
        self.name = identifier(prefix.with_name(prefix.name + ".h"))
        library = library or build_library(prefix, folder or prefix.parent, checked, flags, precompiled)
        self.library = ctypes.CDLL(str(library), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        self._handle = ctypes.c_void_p()
        self._declare()
        # A library that this process has loaded before has counted already.
        self._before = self._counters()
        self.inputs = self._infos("input")
        self.outputs = self._infos("output")
        weights = weights or prefix.with_name(prefix.name + ".safetensors")
        self._check(self._load(ctypes.byref(self._handle), os.fsencode(weights), None), "load")

    def _declare(self):
        def function(name, result, *arguments):
            f = getattr(self.library, name)
            f.restype, f.argtypes = result, arguments
            return f

        pointers = ctypes.POINTER(ctypes.c_void_p)
        self._load = function(f"{self.name}_load", ctypes.c_int, pointers, ctypes.c_char_p, ctypes.c_void_p)
        self._run = function(f"{self.name}_run", ctypes.c_int, ctypes.c_void_p, pointers, pointers, ctypes.c_void_p)
        self._free = function(f"{self.name}_free", None, ctypes.c_void_p)
        # Only models with outputs whose extents the run tells have it.
        self._output_shape = (function(f"{self.name}_output_shape", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                                       ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p)
                              if hasattr(self.library, f"{self.name}_output_shape") else None)
        self.weights_bytes = function(f"{self.name}_weights_bytes", ctypes.c_size_t)()
        self.arena_bytes = function(f"{self.name}_arena_bytes", ctypes.c_size_t)()
        self._last_error = function("memplan_last_error", ctypes.c_char_p)
        self._read_counters = function("memplan_tools_counters", None, ctypes.POINTER(Counters))

    def _infos(self, kind: str) -> list[_TensorInfo]:
        count_of = getattr(self.library, f"{self.name}_num_{kind}s")
        count_of.restype = ctypes.c_size_t
        return list((_TensorInfo * count_of()).in_dll(self.library, f"{self.name}_{kind}s"))

    def _check(self, status: int, what: str):
        if status:
            raise HostError(f"{self.name}_{what}: status {status}: {self._last_error().decode()}")

    def _counters(self) -> Counters:
        now = Counters()
        self._read_counters(ctypes.byref(now))
        return now

    def counters(self) -> Counters:
        """What the runtime has done since this model's load began."""
        now = self._counters()
        return Counters(*(getattr(now, n) - getattr(self._before, n) for n, _ in Counters._fields_))

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name. The output arrays start as NaN (or ones), so that an element left unwritten shows."""
        arrays = []
        for info in self.inputs:
            array = np.asarray(inputs[info.name.decode()], order="C")
            want = (DTYPES[info.dtype], [info.dims[i] for i in range(info.rank)])
            if (array.dtype.name, list(array.shape)) != want:
                raise ValueError(f"input {info.name.decode()!r} is {array.dtype}{list(array.shape)}, want {want}")
            arrays.append(pack(array, PACKED_BITS[info.dtype]) if info.dtype in PACKED_BITS else array)
        results = {}
        for info in self.outputs:
            results[info.name.decode()] = np.frombuffer(bytearray(b"\xff" * info.bytes), np.uint8)

        def table(values):
            return (ctypes.c_void_p * max(1, len(values)))(*(v.ctypes.data for v in values))

        given = [a.copy() for a in arrays]
        self._check(self._run(self._handle, table(arrays), table(list(results.values())), None), "run")
        for info, before, after in zip(self.inputs, given, arrays):
            if before.tobytes() != after.tobytes():
                raise HostError(f"{self.name}_run wrote to the caller's input {info.name.decode()!r}")
        found = {info.name.decode(): self._interpret(info, results[info.name.decode()]) for info in self.outputs}
        return {name: self._cut(i, array) for i, (name, array) in enumerate(found.items())}

    def _cut(self, output: int, array: np.ndarray) -> np.ndarray:
        """The part of an output that the run filled, where only the run tells its extents."""
        if not self._output_shape or array.ndim == 0:
            return array
        extents = (ctypes.c_int64 * array.ndim)()
        self._check(self._output_shape(self._handle, output, extents, None), "output_shape")
        if any(not 0 <= extent <= bound for extent, bound in zip(extents, array.shape)):
            raise HostError(f"{self.name}: output {output} has extents {list(extents)} of at most {list(array.shape)}")
        return np.ascontiguousarray(array[tuple(slice(extents[i]) for i in range(array.ndim))])

    @staticmethod
    def _interpret(info, data: np.ndarray) -> np.ndarray:
        dtype, shape = numpy_dtype(DTYPES[info.dtype]), [info.dims[i] for i in range(info.rank)]
        if info.dtype in PACKED_BITS:
            return unpack(data, PACKED_BITS[info.dtype], dtype, shape)
        return data.view(dtype).reshape(shape)

    def close(self):
        if self._handle:
            self._free(self._handle)
            self._handle = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
