//===- Emitter.cpp - What the op emitters share ---------------------------===//

#include "Emitter.h"

#include "CppText.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace memplan {

std::string Emitter::define(StringRef hint, StringRef text) {
  auto found = nameOfText.find(text);
  if (found != nameOfText.end())
    return found->second;
  std::string name = hint.str();
  for (unsigned i = 2; !names.insert(name).second; ++i)
    name = hint.str() + "_" + std::to_string(i);
  nameOfText[text] = name;
  std::string definition;
  StringRef rest = text;
  while (!rest.empty()) {
    auto [before, after] = rest.split(kName);
    definition += before;
    if (before.size() != rest.size())
      definition += name;
    rest = after;
  }
  definitions.push_back({name, definition});
  return name;
}

void collectIdentifiers(StringRef text, llvm::StringSet<> &found) {
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  while (!text.empty()) {
    if (text.consume_front("\"")) {
      text = text.split('"').second; // strings hold no quotes, see the escaper
      continue;
    }
    text = text.drop_until([&](char c) { return isPart(c) || c == '"'; });
    StringRef word = text.take_while(isPart);
    found.insert(word);
    text = text.drop_front(word.size());
  }
}

void collectIdentifiers(const Emitter &emitter, const HostStep &step,
                        llvm::StringSet<> &found) {
  collectIdentifiers(step.text, found);
  if (step.kind != HostStep::Kind::Launch)
    return;
  const Launch &launch = emitter.launches[step.launch];
  collectIdentifiers(launch.call, found);
  for (const PointerArgument &pointer : launch.pointers)
    collectIdentifiers(emitter.getPointer("", pointer.ref), found);
}

FailureOr<std::string> Emitter::getHostScalar(Value value, Operation *user) {
  auto found = hostNames.find(value);
  if (found != hostNames.end())
    return found->second;
  TypedAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    if (auto literal = getCppLiteral(constant))
      return *literal;
  user->emitError() << "uses a scalar of type " << value.getType()
                    << " that the CUDA target's host code can't compute";
  return failure();
}

std::string Emitter::getPointer(StringRef type, const BufferRef &ref) const {
  return ref.pointer(type,
                     [&](Value scalar) { return hostNames.lookup(scalar); });
}

void Emitter::pruneSteps() {
  auto getDefined = [&](const HostStep &step) -> StringRef {
    if (step.kind == HostStep::Kind::Launch) {
      const Launch &launch = launches[step.launch];
      return launch.result ? StringRef(launch.result->name) : StringRef();
    }
    return step.kind == HostStep::Kind::Statement ? StringRef(step.defines)
                                                  : StringRef();
  };
  std::vector<bool> kept(steps.size(), false);
  llvm::StringSet<> used;
  for (bool changed = true; changed;) {
    changed = false;
    // Mostly uses come later: one round from the end, and one more a loop.
    for (size_t i = steps.size(); i-- > 0;) {
      StringRef defined = getDefined(steps[i]);
      if (kept[i] || (!defined.empty() && !used.contains(defined)))
        continue;
      kept[i] = changed = true;
      collectIdentifiers(*this, steps[i], used);
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < steps.size(); ++i)
    if (kept[i]) {
      if (next != i)
        steps[next] = std::move(steps[i]);
      ++next;
    }
  steps.resize(next);
}

void Emitter::pruneDefinitions() {
  llvm::StringSet<> used;
  for (const Launch &launch : launches)
    collectIdentifiers(launch.call, used);
  std::vector<Definition> kept;
  for (Definition &definition : llvm::reverse(definitions)) {
    if (!used.contains(definition.name))
      continue;
    collectIdentifiers(definition.text, used);
    kept.push_back(std::move(definition));
  }
  definitions.assign(std::make_move_iterator(kept.rbegin()),
                     std::make_move_iterator(kept.rend()));
}

std::string Emitter::getGemmArray(StringRef type) {
  return type == "float" ? "gemms" : ("gemmsOf" + type).str();
}

std::string Emitter::addGemm(GemmObject gemm) {
  size_t number = llvm::count_if(
      gemms, [&](const GemmObject &other) { return other.type == gemm.type; });
  gemms.push_back(std::move(gemm));
  return getGemmArray(gemms.back().type) + "[" + std::to_string(number) + "]";
}

static std::string listTypes(ArrayRef<PointerArgument> pointers, bool written) {
  SmallVector<std::string> types;
  for (const PointerArgument &pointer : pointers)
    if (pointer.written == written && !pointer.isWorkspace)
      types.push_back(pointer.ref.format());
  return llvm::join(types, ", ");
}

void Emitter::addLaunch(Operation *op, StringRef what,
                        ArrayRef<PointerArgument> pointers, std::string call) {
  Launch launch;
  launch.op = op;
  launch.node = getNodeName(op->getLoc());
  int64_t read = 0, written = 0;
  for (const PointerArgument &pointer : pointers) {
    int64_t bytes =
        pointer.ref.getNumElements() * pointer.ref.getElementBytes();
    read += pointer.read ? bytes : 0;
    written += pointer.written && !pointer.isWorkspace ? bytes : 0;
  }
  std::string inputs = listTypes(pointers, /*written=*/false);
  launch.title = what.str() + (inputs.empty() ? "" : " ") + inputs + " -> " +
                 listTypes(pointers, /*written=*/true) + "; reads " +
                 formatBytes(read) + ", writes " + formatBytes(written);
  launch.pointers.assign(pointers.begin(), pointers.end());
  launch.call = std::move(call);
  HostStep step{HostStep::Kind::Launch, {}, {}, {}};
  step.launch = launches.size();
  step.point = point;
  steps.push_back(std::move(step));
  launches.push_back(std::move(launch));
}

std::string KernelText::number(StringRef type, const Twine &name,
                               int64_t value) {
  std::string text = name.str();
  for (const Parameter &parameter : parameters)
    if (parameter.name == text)
      return text;
  std::string argument = std::to_string(value);
  if (type == "FastDiv")
    argument = "FastDiv(" + argument + ")";
  parameters.push_back({type.str() + " " + text, text, argument});
  return text;
}

void KernelText::scalar(StringRef type, StringRef name, StringRef argument) {
  parameters.push_back({(type + " " + name).str(), name.str(), argument.str()});
}

std::string KernelText::pointer(StringRef name, const BufferRef &ref, bool read,
                                bool written) {
  std::string type = *getCppType(ref.elementType);
  parameters.push_back({(written ? "" : "const ") + type + " *" + name.str(),
                        name.str(), name.str()});
  pointers.push_back({name.str(), ref, read, written});
  return name.str();
}

std::string KernelText::define(Emitter &emitter, StringRef hint,
                               StringRef comment) {
  std::string text = "// " + comment.str() + "\n";
  std::string head = "__global__ void " + Emitter::kName.str() + "(";
  head += llvm::join(
      llvm::map_range(parameters,
                      [](const Parameter &p) { return p.declaration; }),
      ", ");
  text += wrapAtCommas(head + ") {", "") + body + "}\n";
  return emitter.define(hint, text);
}

std::string KernelText::launch(StringRef kernel, StringRef node,
                               const Twine &grid, const Twine &block,
                               bool barriers) const {
  std::string text = barriers ? "launchWithBarriers(" : "launch(";
  text += quoteForString(node) + ", " + kernel.str() + ", " + grid.str() +
          ", " + block.str() + ", run.stream";
  for (const Parameter &parameter : parameters)
    text += ", " + parameter.argument;
  return text + ")";
}

std::string gridFor(int64_t threads) {
  return "dim3(" + std::to_string((threads + kMapThreads - 1) / kMapThreads) +
         ")";
}

} // namespace memplan
