//===- PlanReport.h - Files that are made from a plan -----------*- C++ -*-===//

#ifndef MEMPLAN_TARGET_REPORT_PLANREPORT_H
#define MEMPLAN_TARGET_REPORT_PLANREPORT_H

#include "memplan/Target/Report/PlanDocument.h"

namespace memplan {

/// Bytes of the weights part of the block: the globals that are read, each
/// aligned, see WeightsLayout. 0 if a weight has no static size.
int64_t getWeightsBytes(mlir::ModuleOp module);

/// The columns `id,lower,upper,size,offset`: one line a buffer, lifetimes
/// half-open, sizes in bytes as in the JSON. MiniMalloc's format
/// (github.com/google/minimalloc) with the offset as a last column. A buffer
/// with parts is one line a part, `b7.0` and so on. A plan of several memory
/// spaces is several problems and refused.
llvm::Error emitPlanCSV(const PlanDocument &plan, llvm::raw_ostream &os);

/// The memory map (docs/MemoryMap.md): one HTML file with all that it needs.
/// With `other`, the two plans side by side, `other` to the left: what `plan`
/// is compared with.
void emitMemoryMap(const PlanDocument &plan, llvm::raw_ostream &os,
                   const PlanDocument *other = nullptr);

/// The memory map as a picture, a tooltip (`<title>`) for each buffer.
void emitMemoryMapSVG(const PlanDocument &plan, llvm::raw_ostream &os);

/// Chrome's trace event format, which Perfetto reads: one slice for each
/// operation, a microsecond long, and counters of the live bytes.
void emitChromeTrace(const PlanDocument &plan, llvm::raw_ostream &os);

/// A pickle of the structure that torch.cuda.memory._snapshot() returns, for
/// PyTorch's memory_viz page. An error if sizes add up to more than an address.
llvm::Error emitTorchSnapshot(const PlanDocument &plan, llvm::raw_ostream &os);

/// The model's file with the plan in its `metadata_props`, for Netron: each
/// node gets when it runs and where its results lie. All else stays byte for
/// byte. An error if `model` is no ONNX model, or says where its external data
/// is and `keepsFolder` is not set (what is written then lies elsewhere).
llvm::Error emitAnnotatedONNX(const PlanDocument &plan, llvm::StringRef model,
                              bool keepsFolder, llvm::raw_ostream &os);

} // namespace memplan

#endif // MEMPLAN_TARGET_REPORT_PLANREPORT_H
