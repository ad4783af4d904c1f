"""lit configuration: runs the tests of one build tree, given by --param build=DIR."""

import os
import shutil

import lit.formats

config.name = "memplan"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "python", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
build = lit_config.params.get("build")
if not build:
    lit_config.fatal("say which build to test: lit --param build=BUILD_DIR test")
build = os.path.abspath(build)
config.test_exec_root = os.path.join(build, "test")

llvm_bin = lit_config.params.get("llvm", "/usr/lib/llvm-22/bin")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(build, "bin"), llvm_bin, config.environment["PATH"]]
)
config.substitutions.append(("%plugin", os.path.join(build, "lib", "MemPlanPlugin.so")))
config.substitutions.append(("%mlir-opt", os.path.join(llvm_bin, "mlir-opt")))
config.substitutions.append(("%python", lit_config.params.get("python", "python3")))
config.substitutions.append(
    ("%runtime-include", os.path.join(config.test_source_root, "..", "include"))
)
if shutil.which("nvcc"):
    config.available_features.add("nvcc")
