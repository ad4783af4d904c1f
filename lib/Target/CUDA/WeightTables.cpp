//===- WeightTables.cpp - Where emitted code finds its weights ------------===//

#include "CppText.h"
#include "SourceWriter.h"

using namespace mlir;

namespace memplan {

static void writeEntry(const Weight &weight, int64_t offset,
                       llvm::raw_ostream &os) {
  os << "    {" << quoteForString(weight.name) << ", " << offset << ", "
     << weight.bytes << ", " << weight.blockOffset << "},\n";
}

static void writeSources(const ProgramText &program, llvm::raw_ostream &os) {
  os << "// The model's own files, below the folder that load is given; of "
        "each\n"
        "// weight the name, byte in the file, bytes, byte in the block.\n";
  std::string sources;
  llvm::raw_string_ostream list(sources);
  for (auto [number, source] : llvm::enumerate(program.weightSources)) {
    os << "constexpr WeightEntry kWeights" << number << "[] = {\n";
    for (auto [index, offset] : source.entries)
      writeEntry(program.weights.weights[index], offset, os);
    os << "};\n";
    list << "    {" << quoteForString(source.name) << ", {" << source.fileBytes
         << ", " << source.headerBytes << ", " << source.headerHash
         << "u}, kWeights" << number << ", " << source.entries.size() << "},\n";
  }
  if (!sources.empty())
    os << "constexpr WeightsSource kWeightsSources[] = {\n"
       << sources << "};\n";
  os << "\n";
}

static void writeTable(const ProgramText &program, llvm::raw_ostream &os) {
  SafetensorsFile file =
      layOutSafetensors(program.weights, program.options, program.modelName);
  os << "// The file that belongs to this code: its size, and its header's "
        "size "
        "and FNV-1a hash.\n"
     << "constexpr WeightsFile kWeightsFile = {" << file.fileBytes << ", "
     << file.header.size() << ", " << hashHeader(file.header) << "u};\n";
  if (program.weights.weights.empty()) {
    os << "\n";
    return;
  }
  os << "// Name, byte in the file, bytes, byte in the block.\n"
     << "constexpr WeightEntry kWeights[] = {\n";
  for (auto [weight, offset] :
       llvm::zip_equal(program.weights.weights, file.fileOffsets))
    writeEntry(weight, offset, os);
  os << "};\n\n";
}

std::string formatWeightTables(const ProgramText &program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (program.options.externalWeights)
    writeSources(program, os);
  else
    writeTable(program, os);
  return text;
}

} // namespace memplan
