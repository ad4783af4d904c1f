//===- Runtime.h - all that emitted code includes ---------------*- C++ -*-===//

#ifndef MEMPLAN_RUNTIME_RUNTIME_H
#define MEMPLAN_RUNTIME_RUNTIME_H

// IWYU pragma: begin_exports
#include "memplan/Runtime/Checked.h"
#include "memplan/Runtime/ControlFlow.h"
#include "memplan/Runtime/Conv.h"
#include "memplan/Runtime/Element.h"
#include "memplan/Runtime/Error.h"
#include "memplan/Runtime/FastDiv.h"
#include "memplan/Runtime/Float16.h"
#include "memplan/Runtime/Float8.h"
#include "memplan/Runtime/Gemm.h"
#include "memplan/Runtime/Math.h"
#include "memplan/Runtime/Memory.h"
#include "memplan/Runtime/Platform.h"
#include "memplan/Runtime/Reduce.h"
#include "memplan/Runtime/Status.h"
#include "memplan/Runtime/Weights.h"
// IWYU pragma: end_exports

#endif // MEMPLAN_RUNTIME_RUNTIME_H
