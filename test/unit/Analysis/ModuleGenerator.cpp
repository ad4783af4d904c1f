//===- ModuleGenerator.cpp - Random programs on memrefs -------------------===//

#include "ModuleGenerator.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

namespace memplan::test {
namespace {

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed) {}

  std::string run() {
    os << "func.func @f(%x: memref<8xf32>, %y: memref<4xf32>, %n: index, "
          "%c: i1) {\n"
          "  %c0 = arith.constant 0 : index\n"
          "  %c1 = arith.constant 1 : index\n"
          "  %z = arith.constant 0.0 : f32\n";
    long_ = {"%x"};
    short_ = {"%y"};
    block(3 + pick(6), 0);
    // Results, so that most buffers matter.
    for (unsigned i = 0; i < 3; ++i)
      os << "  memref.copy " << any(long_)
         << ", %x : memref<8xf32> to memref<8xf32>\n";
    os << "  return\n}\n";
    return text;
  }

private:
  using Names = llvm::SmallVector<std::string>;

  unsigned pick(unsigned count) {
    // Not std::uniform_int_distribution: its results differ by library.
    return static_cast<unsigned>(random() % count);
  }
  const std::string &any(const Names &names) {
    // Prefers the latest.
    unsigned back = std::min<unsigned>(pick(4), names.size() - 1);
    return pick(3) ? names[names.size() - 1 - back] : names[pick(names.size())];
  }
  std::string fresh() { return "%v" + std::to_string(counter++); }

  void block(unsigned statements, unsigned depth) {
    for (unsigned i = 0; i < statements; ++i)
      statement(depth);
  }

  void statement(unsigned depth) {
    switch (pick(depth < 2 ? 14 : 10)) {
    case 0:
    case 1:
    case 2:
      return allocLong();
    case 3:
      return allocShort();
    case 4:
    case 5:
    case 6:
      return copy();
    case 7:
      return view();
    case 8:
      os << "  linalg.fill ins(%z : f32) outs(" << any(long_)
         << " : memref<8xf32>)\n";
      return;
    case 9: {
      std::string name = fresh();
      os << "  " << name << " = arith.select %c, " << any(long_) << ", "
         << any(long_) << " : memref<8xf32>\n";
      long_.push_back(name);
      return;
    }
    case 10:
      return ifStatement(depth);
    case 11:
      return forStatement(depth);
    case 12:
      return whileStatement(depth);
    default:
      return copy();
    }
  }

  void allocLong() {
    std::string name = fresh();
    os << "  " << name << " = memref.alloc() : memref<8xf32>\n"
       << "  memref.copy " << any(long_) << ", " << name
       << " : memref<8xf32> to memref<8xf32>\n";
    long_.push_back(name);
  }
  void allocShort() {
    std::string name = fresh();
    os << "  " << name << " = memref.alloc() : memref<4xf32>\n"
       << "  memref.copy " << any(short_) << ", " << name
       << " : memref<4xf32> to memref<4xf32>\n";
    short_.push_back(name);
  }
  void copy() {
    bool isLong = pick(4) != 0;
    const char *type = isLong ? "memref<8xf32>" : "memref<4xf32>";
    const Names &names = isLong ? long_ : short_;
    os << "  memref.copy " << any(names) << ", " << any(names) << " : " << type
       << " to " << type << "\n";
  }
  /// Through a reshape there and back, or the lower half.
  void view() {
    std::string square = fresh(), name = fresh();
    if (pick(2)) {
      os << "  " << square << " = memref.expand_shape " << any(long_)
         << " [[0, 1]] output_shape [2, 4] : memref<8xf32> into "
            "memref<2x4xf32>\n"
         << "  " << name << " = memref.collapse_shape " << square
         << " [[0, 1]] : memref<2x4xf32> into memref<8xf32>\n";
      long_.push_back(name);
      return;
    }
    os << "  " << square << " = memref.subview " << any(long_)
       << "[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>\n"
       << "  " << name << " = memref.cast " << square
       << " : memref<4xf32, strided<[1]>> to memref<4xf32>\n";
    short_.push_back(name);
  }

  /// Statements in a scope of their own; the buffer to hand on.
  std::string scope(unsigned depth) {
    Names outerLong = long_, outerShort = short_;
    block(1 + pick(4), depth + 1);
    std::string last = any(long_);
    long_ = outerLong;
    short_ = outerShort;
    return last;
  }
  void ifStatement(unsigned depth) {
    std::string name = fresh();
    os << "  " << name << " = scf.if %c -> memref<8xf32> {\n";
    std::string result = scope(depth);
    os << "  scf.yield " << result << " : memref<8xf32>\n  } else {\n";
    result = scope(depth);
    os << "  scf.yield " << result << " : memref<8xf32>\n  }\n";
    long_.push_back(name);
  }
  void forStatement(unsigned depth) {
    std::string name = fresh(), left = fresh(), right = fresh();
    std::string first = any(long_), second = any(long_);
    os << "  " << name << ":2 = scf.for " << fresh()
       << " = %c0 to %n step %c1 iter_args(" << left << " = " << first << ", "
       << right << " = " << second << ") -> (memref<8xf32>, memref<8xf32>) {\n";
    Names outer = long_;
    long_.push_back(left);
    long_.push_back(right);
    std::string result = scope(depth);
    // Seldom the inner buffer, which the planner must then leave alone.
    if (pick(4))
      result = right;
    os << "  scf.yield " << result << ", " << left
       << " : memref<8xf32>, memref<8xf32>\n  }\n";
    long_ = outer;
    long_.push_back(name + "#0");
    long_.push_back(name + "#1");
  }
  void whileStatement(unsigned depth) {
    std::string name = fresh(), before = fresh(), after = fresh();
    os << "  " << name << " = scf.while (" << before << " = " << any(long_)
       << ") : (memref<8xf32>) -> memref<8xf32> {\n";
    Names outer = long_;
    long_.push_back(before);
    std::string result = scope(depth);
    os << "  scf.condition(%c) " << result << " : memref<8xf32>\n  } do {\n  "
       << "^bb0(" << after << ": memref<8xf32>):\n";
    long_ = outer;
    long_.push_back(after);
    result = scope(depth);
    long_ = outer;
    if (pick(4))
      result = any(long_);
    os << "  scf.yield " << result << " : memref<8xf32>\n  }\n";
    long_.push_back(name);
  }

  std::mt19937_64 random;
  std::string text;
  llvm::raw_string_ostream os{text};
  /// Names in scope of memref<8xf32> and of memref<4xf32>.
  Names long_, short_;
  unsigned counter = 0;
};

const char *const kModules[] = {
    // A chain.
    R"mlir(func.func @f(%x: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  %c = memref.alloc() : memref<8xf32>
  %d = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  memref.copy %a, %b : memref<8xf32> to memref<8xf32>
  memref.copy %b, %c : memref<8xf32> to memref<8xf32>
  memref.copy %c, %d : memref<8xf32> to memref<8xf32>
  memref.copy %d, %x : memref<8xf32> to memref<8xf32>
  return
})mlir",
    // A diamond with a long skip and a dead leaf.
    R"mlir(func.func private @kernel(memref<8xf32>, memref<8xf32>)
func.func @f(%x: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  %c = memref.alloc() : memref<8xf32>
  %leaf = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  memref.copy %a, %b : memref<8xf32> to memref<8xf32>
  memref.copy %b, %leaf : memref<8xf32> to memref<8xf32>
  memref.copy %b, %c : memref<8xf32> to memref<8xf32>
  call @kernel(%a, %c) : (memref<8xf32>, memref<8xf32>) -> ()
  memref.copy %c, %x : memref<8xf32> to memref<8xf32>
  memref.copy %a, %x : memref<8xf32> to memref<8xf32>
  return
})mlir",
    // Views of views, strided, through a transpose.
    R"mlir(func.func @f(%x: memref<4x4xf32>) {
  %a = memref.alloc() : memref<4x4xf32>
  %b = memref.alloc() : memref<4x4xf32>
  %c = memref.alloc() : memref<4x4xf32>
  memref.copy %x, %a : memref<4x4xf32> to memref<4x4xf32>
  %t = memref.transpose %a (i, j) -> (j, i) : memref<4x4xf32> to memref<4x4xf32, strided<[1, 4]>>
  %s = memref.subview %t[0, 2] [4, 2] [1, 1] : memref<4x4xf32, strided<[1, 4]>> to memref<4x2xf32, strided<[1, 4], offset: 8>>
  %u = memref.subview %b[0, 0] [4, 2] [1, 2] : memref<4x4xf32> to memref<4x2xf32, strided<[4, 2]>>
  %w = memref.subview %b[0, 1] [4, 2] [1, 2] : memref<4x4xf32> to memref<4x2xf32, strided<[4, 2], offset: 1>>
  memref.copy %s, %u : memref<4x2xf32, strided<[1, 4], offset: 8>> to memref<4x2xf32, strided<[4, 2]>>
  memref.copy %u, %w : memref<4x2xf32, strided<[4, 2]>> to memref<4x2xf32, strided<[4, 2], offset: 1>>
  memref.copy %b, %c : memref<4x4xf32> to memref<4x4xf32>
  memref.copy %c, %x : memref<4x4xf32> to memref<4x4xf32>
  return
})mlir",
    // Nested loops, buffers at each depth, one read across iterations.
    R"mlir(func.func @f(%x: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<8xf32>
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%a : memref<8xf32>)
  scf.for %i = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<8xf32>
    memref.copy %a, %b : memref<8xf32> to memref<8xf32>
    scf.for %j = %c0 to %n step %c1 {
      %d = memref.alloc() : memref<8xf32>
      %e = memref.alloc() : memref<8xf32>
      memref.copy %b, %d : memref<8xf32> to memref<8xf32>
      memref.copy %d, %e : memref<8xf32> to memref<8xf32>
      memref.copy %e, %b : memref<8xf32> to memref<8xf32>
    }
    memref.copy %b, %a : memref<8xf32> to memref<8xf32>
  }
  %g = memref.alloc() : memref<8xf32>
  memref.copy %a, %g : memref<8xf32> to memref<8xf32>
  memref.copy %g, %x : memref<8xf32> to memref<8xf32>
  return
})mlir",
    // Ping-pong through iteration arguments.
    R"mlir(func.func @f(%x: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%a : memref<8xf32>)
  linalg.fill ins(%z : f32) outs(%b : memref<8xf32>)
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (memref<8xf32>, memref<8xf32>) {
    %t = memref.alloc() : memref<8xf32>
    memref.copy %p, %t : memref<8xf32> to memref<8xf32>
    memref.copy %t, %q : memref<8xf32> to memref<8xf32>
    scf.yield %q, %p : memref<8xf32>, memref<8xf32>
  }
  %g = memref.alloc() : memref<8xf32>
  memref.copy %r#0, %g : memref<8xf32> to memref<8xf32>
  memref.copy %r#1, %x : memref<8xf32> to memref<8xf32>
  memref.copy %g, %x : memref<8xf32> to memref<8xf32>
  return
})mlir",
    // A loop among blocks whose textual order is not that of execution.
    R"mlir(func.func @f(%x: memref<8xf32>, %c: i1) {
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  cf.br ^enter
^tail(%p: memref<8xf32>):
  %t = memref.alloc() : memref<8xf32>
  memref.copy %p, %t : memref<8xf32> to memref<8xf32>
  memref.copy %t, %x : memref<8xf32> to memref<8xf32>
  cf.cond_br %c, ^body, ^exit
^enter:
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  cf.br ^body
^body:
  %u = memref.alloc() : memref<8xf32>
  memref.copy %a, %b : memref<8xf32> to memref<8xf32>
  memref.copy %b, %u : memref<8xf32> to memref<8xf32>
  memref.copy %u, %x : memref<8xf32> to memref<8xf32>
  cf.cond_br %c, ^tail(%a : memref<8xf32>), ^tail(%b : memref<8xf32>)
^exit:
  memref.copy %b, %x : memref<8xf32> to memref<8xf32>
  return
})mlir",
    // A region with blocks inside a loop; a value yielded out of both.
    R"mlir(func.func @f(%x: memref<8xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> (memref<8xf32>) {
    %e = scf.execute_region -> memref<8xf32> {
      %s = memref.alloc() : memref<8xf32>
      memref.copy %p, %s : memref<8xf32> to memref<8xf32>
      cf.cond_br %c, ^left, ^right
    ^left:
      %l = memref.alloc() : memref<8xf32>
      memref.copy %s, %l : memref<8xf32> to memref<8xf32>
      scf.yield %l : memref<8xf32>
    ^right:
      scf.yield %s : memref<8xf32>
    }
    %o = memref.alloc() : memref<8xf32>
    memref.copy %x, %o : memref<8xf32> to memref<8xf32>
    memref.copy %e, %a : memref<8xf32> to memref<8xf32>
    memref.copy %o, %x : memref<8xf32> to memref<8xf32>
    scf.yield %a : memref<8xf32>
  }
  memref.copy %r, %x : memref<8xf32> to memref<8xf32>
  return
})mlir",
};

} // namespace

std::string generateModule(uint64_t seed) { return Generator(seed).run(); }

llvm::ArrayRef<const char *> getHandWrittenModules() { return kModules; }

} // namespace memplan::test
