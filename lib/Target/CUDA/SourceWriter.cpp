//===- SourceWriter.cpp - Launches and definitions to files ---------------===//

#include "SourceWriter.h"

#include "CppText.h"
#include "Safetensors.h"
#include "StepWriter.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace memplan {

namespace {

class SourceWriter {
public:
  SourceWriter(const ProgramText &program, ModuleOp module)
      : program(program), name(program.options.name), module(module), os(text) {
  }

  std::string write();

private:
  void writeStamp();
  void writeModel();
  void writeRun(StringRef launches);
  void writeDefinitions();
  size_t writeLaunches();
  void writeTensorTable(StringRef kind, ArrayRef<TensorInfo> tensors);
  llvm::MapVector<StringRef, size_t> countGemms() const;
  void writeLoad();
  void writeRunFunction();
  void writeOutputShape();
  /// What load takes beside the weights.
  StringRef getRunBytes() const {
    return program.extents.empty() ? "kArenaBytes" : "kRunBytes";
  }

  const ProgramText &program;
  const std::string &name;
  ModuleOp module;
  std::string text;
  llvm::raw_string_ostream os;
  size_t numFunctions = 0; ///< That launch.
};

std::string describe(const TensorInfo &tensor) {
  std::string text =
      escapeForComment(tensor.name) + ": " + formatType(tensor.declared);
  for (auto [dim, extent] : tensor.runDims)
    text += (extent == tensor.runDims.front().second
                 ? "; the run tells the extent of dim "
                 : ", ") +
            std::to_string(dim);
  return text;
}

std::string getStamp(const ProgramText &program) {
  std::string text = "Made by memplan " MEMPLAN_VERSION;
  if (!program.modelName.empty())
    text += " from the model '" + escapeForComment(program.modelName) + "'";
  if (!program.options.modelHash.empty())
    text += "\nModel's SHA-256: " + escapeForComment(program.options.modelHash);
  if (!program.options.settings.empty())
    text += "\nSettings: " + escapeForComment(program.options.settings, 1000);
  return text;
}

void SourceWriter::writeStamp() {
  SmallVector<StringRef> lines;
  std::string stamp = getStamp(program);
  StringRef(stamp).split(lines, '\n');
  for (StringRef line : lines)
    os << "// " << line << "\n";
  os << "//\n"
     << "// CUDA: nvcc -std=c++17 -O2 -arch=sm_80 -I <memplan's include> -c\n"
     << "//       (link with -lcublasLt)\n"
     << "// Host: g++ -std=c++17 -O2 -x c++ -pthread -I <memplan's include> "
        "-c\n"
     << "//       (with -DMEMPLAN_CHECKED the plan is checked while it "
        "runs)\n\n";
  std::string header = program.options.headerName.empty()
                           ? name + ".h"
                           : program.options.headerName;
  // Not a string literal: escapes mean nothing here. What can't stand in it is
  // left to be included by its plain name.
  if (header.find_first_of("\"\n\\") != std::string::npos)
    header = name + ".h";
  os << "#include \"" << header << "\"\n\n"
     << "#include \"memplan/Runtime/Runtime.h\"\n\n"
     << "#include <new>\n\n"
     << "using namespace memplan::rt;\n\n";
}

void SourceWriter::writeModel() {
  os << "struct " << name << "_t {\n"
     << "  void *block = nullptr; // what load allocated, if it did\n"
     << "  char *weights = nullptr;\n"
     << "  char *arena = nullptr;\n";
  if (!program.emitter.gemms.empty())
    os << "  GemmContext gemmContext;\n";
  for (const auto &[type, count] : countGemms())
    os << "  Gemm<" << type << "> " << Emitter::getGemmArray(type) << "["
       << count << "];\n";
  if (program.countReadbacks() != 0)
    os << "  Readback readback;\n";
  os << "  ArenaGuard guard;\n"
     << "};\n\n"
     << "namespace {\n\n"
     << "constexpr size_t kWeightsBytes = " << program.weights.bytes << ";\n"
     << "constexpr size_t kArenaBytes = " << program.arenaBytes << ";\n"
     << "constexpr size_t kAlignment = "
     << std::max(kWeightAlignment, program.arenaAlignment)
     << "; // of weights and arena\n";
  if (!program.extents.empty())
    os << "// Behind the arena, 16 bytes apart: extents that a run tells.\n"
       << "constexpr size_t kExtentsOffset = (kArenaBytes + 15) / 16 * 16;\n"
       << "constexpr size_t kRunBytes = kExtentsOffset + "
       << 16 * program.extents.size() << ";\n\n";
}

void SourceWriter::writeRun(StringRef launches) {
  os << "// What the launches of one run share. Offsets are in bytes.\n"
     << "struct Run {\n"
     << "  " << name << "_t &model;\n"
     << R"(  const void *const *inputs;
  void *const *outputs;
  cudaStream_t stream;

  template <class T>
  T *arena(size_t offset) const {
    return reinterpret_cast<T *>(model.arena + offset);
  }
  template <class T>
  const T *weights(size_t offset) const {
    return reinterpret_cast<const T *>(model.weights + offset);
  }
  template <class T>
  const T *input(int number, size_t offset = 0) const {
    return reinterpret_cast<const T *>(static_cast<const char *>(inputs[number]) + offset);
  }
  template <class T>
  T *output(int number, size_t offset = 0) const {
    return reinterpret_cast<T *>(static_cast<char *>(outputs[number]) + offset);
  }

)";
  // nvcc warns of members of a local type that nobody calls.
  if (StringRef(launches).contains("run.at<"))
    os << R"(  // A buffer that one of several pointers leads to.
  template <class T>
  static T *at(char *buffer, size_t offset = 0) {
    return reinterpret_cast<T *>(buffer + offset);
  }
  template <class T>
  static const T *at(const char *buffer, size_t offset = 0) {
    return reinterpret_cast<const T *>(buffer + offset);
  }

)";
  os << R"(  // The plan's claims, empty but in checked host builds: what of the arena a launch writes and
  // reads, and when a buffer in it lives.
  memplan_status before(const char *what, std::initializer_list<Range> writes,
                        std::initializer_list<Range> reads) const {
    return model.guard.beforeLaunch(what, writes, reads);
  }
  memplan_status after(const char *what, std::initializer_list<Range> writes) const {
    return model.guard.afterLaunch(what, writes);
  }
)";
  if (StringRef(launches).contains("run.begin("))
    os << R"(  memplan_status begin(size_t offset, size_t bytes, const char *name) const {
    return model.guard.begin(model.arena + offset, bytes, name);
  }
)";
  if (StringRef(launches).contains("run.end("))
    os << R"(  memplan_status end(size_t offset, size_t bytes) const {
    return model.guard.end(model.arena + offset, bytes);
  }
)";
  os << "};\n\n";
}

void SourceWriter::writeDefinitions() {
  if (program.emitter.definitions.empty())
    return;
  os << "//===- Kernels and what they compute "
        "----------------------------------===//\n\n";
  for (const Emitter::Definition &definition : program.emitter.definitions)
    os << definition.text << "\n";
}

size_t SourceWriter::writeLaunches() { return StepWriter(program, os).write(); }

void SourceWriter::writeTensorTable(StringRef kind,
                                    ArrayRef<TensorInfo> tensors) {
  for (auto [number, tensor] : llvm::enumerate(tensors))
    if (tensor.declared.getRank() != 0) {
      os << "static const int64_t " << kind << "Dims" << number << "[] = {";
      llvm::interleaveComma(tensor.declared.getShape(), os);
      os << "};\n";
    }
  os << "const memplan_tensor_info " << name << "_" << kind << "s[] = {\n";
  for (auto [number, tensor] : llvm::enumerate(tensors)) {
    Type element = tensor.declared.getElementType();
    if (tensor.isUnsigned && element.isInteger())
      element = IntegerType::get(element.getContext(),
                                 element.getIntOrFloatBitWidth(),
                                 IntegerType::Unsigned);
    os << "    {" << quoteForString(tensor.name) << ", "
       << getDTypeName(element) << ", " << tensor.declared.getRank() << ", ";
    if (tensor.declared.getRank() != 0)
      os << kind << "Dims" << number;
    else
      os << "nullptr";
    os << ", " << *getContentBytes(tensor.type) << "},\n";
  }
  if (tensors.empty()) // C++ has no arrays of no elements
    os << "    {\"\", MEMPLAN_F32, 0, nullptr, 0},\n";
  os << "};\n"
     << "size_t " << name << "_num_" << kind << "s(void) { return "
     << tensors.size() << "; }\n\n";
}

/// How many there are of each type, in the order in which types appear.
llvm::MapVector<StringRef, size_t> SourceWriter::countGemms() const {
  llvm::MapVector<StringRef, size_t> counts;
  for (const GemmObject &gemm : program.emitter.gemms)
    ++counts[gemm.type];
  return counts;
}

void SourceWriter::writeLoad() {
  bool hasGemms = !program.emitter.gemms.empty();
  os << "namespace {\n\n"
     << "memplan_status prepare(" << name
     << "_t &model, const char *weights_path) {\n"
     << "  if (reinterpret_cast<uintptr_t>(model.weights) % kAlignment != 0 "
        "||\n"
     << "      reinterpret_cast<uintptr_t>(model.arena) % kAlignment != 0)\n"
     << "    return fail(MEMPLAN_ERROR_ARGUMENT, \"" << name
     << ": weights and arena must be aligned to %zu bytes\", kAlignment);\n"
     << "  if (weights_path)\n"
     << "    MEMPLAN_TRY("
     << (program.options.externalWeights ? "loadWeightsFrom(weights_path, "
                                         : "loadWeights(weights_path, "
                                           "kWeightsFile, ");
  if (program.weights.weights.empty())
    os << "nullptr, 0";
  else if (program.options.externalWeights)
    os << "kWeightsSources, " << program.weightSources.size();
  else
    os << "kWeights, " << program.weights.weights.size();
  os << ", model.weights, kWeightsBytes));\n";
  if (hasGemms)
    os << "  MEMPLAN_TRY(model.gemmContext.create());\n";
  if (program.countReadbacks() != 0)
    os << "  MEMPLAN_TRY(model.readback.create());\n";
  llvm::StringMap<size_t> numbers;
  for (const GemmObject &gemm : program.emitter.gemms)
    os << wrapAtCommas("MEMPLAN_TRY(model." + Emitter::getGemmArray(gemm.type) +
                           "[" + std::to_string(numbers[gemm.type]++) +
                           "].create(model.gemmContext, " +
                           quoteForString(gemm.node) + ", " + gemm.arguments +
                           "));",
                       "  ");
  os << "  return MEMPLAN_OK;\n}\n\n"
     << "// Gives `model` to the caller, or frees it.\n"
     << "memplan_status finish(" << name << "_t *model, memplan_status status, "
     << name << "_t **out) {\n"
     << "  if (status == MEMPLAN_OK)\n    *out = model;\n"
     << "  else\n    " << name << "_free(model);\n  return status;\n}\n\n"
     << "} // namespace\n\n";

  auto writeStart = [&] {
    os << "  if (!out)\n    return fail(MEMPLAN_ERROR_ARGUMENT, \"" << name
       << "_load: no place for the model given\");\n"
       << "  *out = nullptr;\n"
       << "  " << name << "_t *model = new (std::nothrow) " << name << "_t;\n"
       << "  if (!model)\n    return fail(MEMPLAN_ERROR_MEMORY, \"" << name
       << "_load: no host memory\");\n";
  };
  os << "memplan_status " << name << "_load(" << name
     << "_t **out, const char *weights_path, void *device_block) {\n";
  writeStart();
  os << "  memplan_status status = MEMPLAN_OK;\n"
     << "  if (!weights_path)\n    status = fail(MEMPLAN_ERROR_ARGUMENT, \""
     << name << "_load: no path of a weights file given\");\n"
     << "  else if (!device_block)\n"
     << "    status = deviceAllocate(\"" << name << "_load\", kWeightsBytes + "
     << getRunBytes() << ", &model->block);\n"
     << "  if (status != MEMPLAN_OK)\n    return finish(model, status, out);\n"
     << "  // [ weights | arena ]; null if both are empty.\n"
     << "  model->weights = static_cast<char *>(device_block ? device_block : "
        "model->block);\n"
     << "  model->arena = model->weights ? model->weights + kWeightsBytes : "
        "nullptr;\n"
     << "  return finish(model, prepare(*model, weights_path), out);\n}\n\n";
  os << "memplan_status " << name << "_load_parts(" << name
     << "_t **out, const char *weights_path, void *weights, void *arena) {\n";
  writeStart();
  os << "  if ((kWeightsBytes && !weights) || (" << getRunBytes()
     << " && !arena))\n"
     << "    return finish(model, fail(MEMPLAN_ERROR_ARGUMENT, \"" << name
     << "_load_parts: weights and arena must be given\"), out);\n"
     << "  model->weights = static_cast<char *>(weights);\n"
     << "  model->arena = static_cast<char *>(arena);\n"
     << "  return finish(model, prepare(*model, weights_path), out);\n}\n\n";
  os << "void " << name << "_free(" << name << "_t *model) {\n"
     << "  if (!model)\n    return;\n";
  for (const auto &entry : countGemms())
    os << "  for (auto &gemm : model->" << Emitter::getGemmArray(entry.first)
       << ")\n    gemm.destroy();\n";
  if (hasGemms)
    os << "  model->gemmContext.destroy();\n";
  if (program.countReadbacks() != 0)
    os << "  model->readback.destroy();\n";
  os << "  deviceFree(model->block);\n  delete model;\n}\n\n";
}

void SourceWriter::writeRunFunction() {
  os << R"(namespace {

// Inputs and outputs are read and written 16 bytes at a time.
memplan_status checkPointers(const char *kind, const void *const *pointers,
                             const memplan_tensor_info *tensors, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (tensors[i].bytes == 0)
      continue;
    if (!pointers || !pointers[i])
      return fail(MEMPLAN_ERROR_ARGUMENT, "%s %zu ('%s') is null", kind, i, tensors[i].name);
    if (reinterpret_cast<uintptr_t>(pointers[i]) % 16 != 0)
      return fail(MEMPLAN_ERROR_ARGUMENT, "%s %zu ('%s') at %p isn't aligned to 16 bytes", kind, i,
                  tensors[i].name, pointers[i]);
  }
  return MEMPLAN_OK;
}

} // namespace

)";
  os << "memplan_status " << name << "_run(" << name
     << "_t *model, const void *const *inputs, void *const *outputs,\n"
     << "    cudaStream_t stream) {\n"
     << "  if (!model)\n    return fail(MEMPLAN_ERROR_ARGUMENT, \"" << name
     << "_run: no model given\");\n"
     << "  MEMPLAN_TRY(checkPointers(\"input\", inputs, " << name << "_inputs, "
     << program.inputs.size() << "));\n"
     << "  MEMPLAN_TRY(checkPointers(\"output\", outputs, " << name
     << "_outputs, " << program.outputs.size() << "));\n"
     << "  MEMPLAN_TRY(model->guard.enter(model->arena, kArenaBytes));\n"
     << "  MEMPLAN_TRY(model->guard.protect(model->weights, kWeightsBytes, "
        "\"weights\"));\n";
  for (auto [number, input] : llvm::enumerate(program.inputs))
    if (*getContentBytes(input.type) != 0)
      os << "  MEMPLAN_TRY(model->guard.protect(inputs[" << number << "], "
         << name << "_inputs[" << number << "].bytes, " << name << "_inputs["
         << number << "].name));\n";
  if (!program.extents.empty()) {
    os << "  // The caller's outputs, then the extents.\n"
       << "  void *places[" << program.outputs.size() + program.extents.size()
       << "];\n"
       << "  for (size_t i = 0; i < " << program.outputs.size() << "; ++i)\n"
       << "    places[i] = outputs[i];\n"
       << "  for (size_t i = 0; i < " << program.extents.size() << "; ++i)\n"
       << "    places[" << program.outputs.size()
       << " + i] = model->arena + kExtentsOffset + 16 * i;\n";
  }
  if (numFunctions != 0)
    os << "  const Run run{*model, inputs, "
       << (program.extents.empty() ? "outputs" : "places") << ", stream};\n";
  else
    os << "  (void)stream;\n";
  for (size_t i = 0; i < numFunctions; ++i)
    os << "  MEMPLAN_TRY(launches" << i << "(run));\n";
  os << "  return model->guard.leave();\n}\n";
}

void SourceWriter::writeOutputShape() {
  if (program.extents.empty())
    return;
  os << "\nmemplan_status " << name << "_output_shape(" << name
     << "_t *model, size_t output, int64_t *dims,\n"
     << "    cudaStream_t stream) {\n"
     << "  if (!model || !dims || output >= " << program.outputs.size()
     << ")\n    return fail(MEMPLAN_ERROR_ARGUMENT, \"" << name
     << "_output_shape: no model, no place for the extents, or no output "
        "%zu\", output);\n"
     << "  for (int32_t i = 0; i < " << name << "_outputs[output].rank; ++i)\n"
     << "    dims[i] = " << name << "_outputs[output].dims[i];\n"
     << "  // Output, dim, and which of the extents it has.\n"
     << "  static constexpr size_t kRunDims[][3] = {";
  const char *separator = "";
  for (auto [number, output] : llvm::enumerate(program.outputs))
    for (auto [dim, extent] : output.runDims) {
      os << separator << "{" << number << ", " << dim << ", " << extent << "}";
      separator = ", ";
    }
  os << "};\n"
     << "  for (const auto &entry : kRunDims) {\n"
     << "    if (entry[0] != output)\n      continue;\n"
     << "    MEMPLAN_TRY(synchronize(\"" << name
     << "_output_shape\", stream));\n"
     << "    MEMPLAN_TRY(copyToHost(\"" << name
     << "_output_shape\", &dims[entry[1]],\n"
     << "                           model->arena + kExtentsOffset + 16 * "
        "entry[2], 8));\n"
     << "  }\n  return MEMPLAN_OK;\n}\n";
}

std::string SourceWriter::write() {
  writeStamp();
  writeModel();
  os << formatWeightTables(program);
  std::string before = std::exchange(text, "");
  numFunctions = writeLaunches();
  std::string launches = std::exchange(text, before);
  if (numFunctions != 0)
    writeRun(launches);
  writeDefinitions();
  os << launches << "} // namespace\n\n";
  writeTensorTable("input", program.inputs);
  writeTensorTable("output", program.outputs);
  os << "size_t " << name << "_weights_bytes(void) { return kWeightsBytes; }\n"
     << "size_t " << name << "_arena_bytes(void) { return " << getRunBytes()
     << "; }\n\n";
  if (size_t count = program.countReadbacks())
    os << "size_t " << name << "_num_readbacks(void) { return " << count
       << "; }\n\n";
  writeLoad();
  writeRunFunction();
  writeOutputShape();
  return std::move(text);
}

} // namespace

size_t ProgramText::countReadbacks() const {
  return llvm::count_if(emitter.steps, [&](const HostStep &step) {
    return step.kind == HostStep::Kind::Launch &&
           emitter.launches[step.launch].result;
  });
}

/// The declaration that only models with readbacks have.
static std::string describeReadbacks(const ProgramText &program) {
  if (program.countReadbacks() == 0)
    return "";
  return "/* Places where `run` reads a value back from the device. */\n"
         "size_t " +
         program.options.name + "_num_readbacks(void);\n\n";
}

/// The declaration that only models with outputs of the run's extents have.
static std::string describeOutputShape(const ProgramText &program) {
  if (program.extents.empty())
    return "";
  return "/* The extents that output `output` has after the last run on "
         "`stream`, which this waits\n"
         " * for; `dims` has room for its rank. Those of the table are upper "
         "bounds: what lies\n"
         " * beyond means nothing. The extents lie behind the arena: in one "
         "that models share,\n"
         " * ask before another model runs. */\n"
         "memplan_status " +
         program.options.name + "_output_shape(" + program.options.name +
         "_t *model, size_t output, int64_t *dims,\n"
         "    cudaStream_t stream);\n\n";
}

/// What the comment on `run` says of streams.
static std::string describeRun(const ProgramText &program) {
  size_t count = program.countReadbacks();
  if (count == 0)
    return "/* Asynchronous on `stream`; allocates nothing; may be captured "
           "into a CUDA graph.\n";
  return "/* Runs on `stream` and allocates nothing. It reads values back from "
         "the device to\n * choose its way (in " +
         std::to_string(count) + (count == 1 ? " place" : " places") +
         ", as often as control passes there): each time it\n * waits for the "
         "stream. So it can't be captured into a CUDA graph; that is an\n * "
         "error.\n";
}

FailureOr<std::string> writeSource(const ProgramText &program,
                                   ModuleOp module) {
  return SourceWriter(program, module).write();
}

std::string writeHeader(const ProgramText &program) {
  const std::string &name = program.options.name;
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string guard = "MEMPLAN_" + StringRef(name).upper() + "_H";
  os << "/* " << llvm::join(llvm::split(getStamp(program), '\n'), "\n * ")
     << "\n *\n";
  auto list = [&](const char *kind, ArrayRef<TensorInfo> tensors) {
    os << " * " << kind << ":\n";
    for (auto [number, tensor] : llvm::enumerate(tensors))
      os << " *   [" << number << "] " << describe(tensor) << "\n";
  };
  list("Inputs", program.inputs);
  list("Outputs", program.outputs);
  os << " */\n\n#ifndef " << guard << "\n#define " << guard << "\n\n"
     << "#include \"memplan/Runtime/Status.h\"\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << "/* A loaded model. One run at a time, since runs share the arena. */\n"
     << "typedef struct " << name << "_t " << name << "_t;\n\n"
     << "size_t " << name << "_num_inputs(void);\n"
     << "size_t " << name << "_num_outputs(void);\n"
     << "extern const memplan_tensor_info " << name << "_inputs[];\n"
     << "extern const memplan_tensor_info " << name << "_outputs[];\n\n"
     << "/* Sizes of the two parts of the block [ weights | arena ]; both are "
        "multiples of\n * the alignment but for the arena's end. */\n"
     << "size_t " << name << "_weights_bytes(void); /* "
     << formatBytes(program.weights.bytes) << " */\n"
     << "size_t " << name << "_arena_bytes(void);   /* "
     << formatBytes(program.arenaBytes) << " */\n\n"
     << describeReadbacks(program)
     << (program.options.externalWeights
             ? "/* `weights_path` is that of the folder that has the model's "
               "own files; \"\" is\n"
               " * the current one. */\n"
             : "")
     << "/* Reads the weights and prepares for runs. `device_block`: device "
        "memory of\n"
     << " * weights_bytes + arena_bytes, aligned to "
     << std::max(kWeightAlignment, program.arenaAlignment)
     << "; it stays the caller's. NULL: load\n"
     << " * allocates it, once, and free frees it. */\n"
     << "memplan_status " << name << "_load(" << name
     << "_t **out, const char *weights_path, void *device_block);\n\n"
     << "/* The same with the parts apart: models that run one after another "
        "can share\n"
     << " * an arena, and contexts of one model the weights. `weights_path` "
        "NULL: `weights`\n"
     << " * already holds what an earlier load put there. */\n"
     << "memplan_status " << name << "_load_parts(" << name
     << "_t **out, const char *weights_path, void *weights, void *arena);\n\n"
     << describeRun(program)
     << " * Device pointers, aligned to 16 bytes, in the order of the tables; "
        "the inputs\n"
     << " * are only read. */\n"
     << "memplan_status " << name << "_run(" << name
     << "_t *model, const void *const *inputs, void *const *outputs,\n"
     << "    cudaStream_t stream);\n\n"
     << describeOutputShape(program) << "void " << name << "_free(" << name
     << "_t *model);\n\n"
     << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}

} // namespace memplan
