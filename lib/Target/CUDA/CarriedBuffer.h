//===- CarriedBuffer.h - Memrefs that control flow carries ------*- C++ -*-===//
//
// A memref that a loop carries, a branch yields or a select chooses is one of
// several. Mostly all of them are the same place, since a loop's body yields
// the buffer that it was given; then it is that place. Otherwise it is a
// pointer variable of the emitted code. Private to lib/Target/CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_CARRIEDBUFFER_H
#define MEMPLAN_LIB_TARGET_CUDA_CARRIEDBUFFER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace memplan {

class BufferTable;
struct BufferRef;

struct CarriedBuffer {
  mlir::Operation *owner = nullptr; ///< The loop, branch or select.
  /// Those of one group of an owner get their sources at the same times.
  unsigned group = 0;
  /// Where it is known.
  mlir::Region *scope = nullptr;
  llvm::SmallVector<mlir::Value, 2> sources;
  unsigned number = 0;

  // Of a variable only:
  bool isVariable = false;
  bool isReadOnly = false; ///< May be an input or a weight.
  bool isInside = false;   ///< May begin elsewhere than a buffer does.
  int64_t alignment = 0;
  llvm::SmallSetVector<mlir::Value, 4> roots; ///< Of what it may be a part.
};

class CarriedBuffers {
public:
  CarriedBuffers(mlir::func::FuncOp function, BufferTable &table)
      : function(function), table(table) {}

  /// Finds them all and decides which are variables.
  void analyze();

  /// Null if `value` is no carried memref.
  const CarriedBuffer *find(mlir::Value value) const;
  const CarriedBuffer &get(unsigned number) const { return buffers[number]; }

  /// Whether the two may be parts of one buffer at the same time.
  bool mayShareBuffer(const BufferRef &a, const BufferRef &b);

private:
  void collect();
  CarriedBuffer &add(mlir::Operation *owner, unsigned group,
                     llvm::ArrayRef<mlir::Value> values,
                     llvm::ArrayRef<mlir::Value> sources);
  bool isOnePlace(const CarriedBuffer &buffer);
  bool isVisible(const BufferRef &ref, const CarriedBuffer &buffer) const;
  bool addProperties(CarriedBuffer &buffer);
  bool mayBeSame(const CarriedBuffer &a, const CarriedBuffer &b);

  mlir::func::FuncOp function;
  BufferTable &table;
  /// In program order, those of an op before those in its regions.
  std::vector<CarriedBuffer> buffers;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::DenseSet<std::pair<unsigned, unsigned>> assumedApart;
};

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_CARRIEDBUFFER_H
