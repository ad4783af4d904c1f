//===- Window.cpp - Sliding windows of convolutions and pools -------------===//

#include "Window.h"

#include "memplan/Support/CheckedMath.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// An attribute with one entry of at least `least` per spatial dim.
static FailureOr<SmallVector<int64_t>> readEntries(NodeBuilder &n,
                                                   StringRef name, size_t count,
                                                   int64_t least,
                                                   int64_t otherwise) {
  auto entries = n.intsAttr(name);
  if (!entries)
    return SmallVector<int64_t>(count, otherwise);
  if (entries->size() != count)
    return n.invalid() << "attribute '" << name << "' has " << entries->size()
                       << " entries, expected " << count;
  for (int64_t entry : *entries)
    // 2^31: keeps every product below in 64 bits.
    if (entry < least || entry > (int64_t(1) << 31))
      return n.unsupported()
             << "attribute '" << name << "' has the entry " << entry << "; "
             << least << " to 2^31 is accepted";
  return *entries;
}

FailureOr<Window> memplan::onnx::readWindow(NodeBuilder &n,
                                            ArrayRef<int64_t> input,
                                            ArrayRef<int64_t> kernel,
                                            bool canDilate, bool canCeil) {
  size_t rank = input.size();
  Window window;
  window.kernel.assign(kernel.begin(), kernel.end());
  for (int64_t extent : kernel)
    if (extent < 1 || extent > (int64_t(1) << 31))
      return n.invalid() << "the kernel has shape " << shapeText(kernel)
                         << "; extents of 1 to 2^31 are accepted";
  auto strides = readEntries(n, "strides", rank, 1, 1);
  if (failed(strides))
    return failure();
  window.strides = *strides;
  window.dilations.assign(rank, 1);
  if (canDilate) {
    auto dilations = readEntries(n, "dilations", rank, 1, 1);
    if (failed(dilations))
      return failure();
    window.dilations = *dilations;
  }
  auto pads = readEntries(n, "pads", 2 * rank, 0, 0);
  if (failed(pads))
    return failure();
  bool isCeil = canCeil && n.intAttr("ceil_mode", 0) != 0;

  StringRef autoPad = n.stringAttr("auto_pad", "NOTSET");
  bool isUpper = autoPad == "SAME_UPPER",
       isSame = isUpper || autoPad == "SAME_LOWER";
  if (!isSame && autoPad != "NOTSET" && autoPad != "VALID" && !autoPad.empty())
    return n.invalid() << "attribute 'auto_pad' is " << quoted(autoPad)
                       << "; NOTSET, SAME_UPPER, SAME_LOWER and VALID are "
                          "accepted";
  bool isExplicit = !isSame && autoPad != "VALID";
  if (!isExplicit && llvm::any_of(*pads, [](int64_t p) { return p != 0; }))
    return n.invalid() << "has both pads and auto_pad " << autoPad
                       << "; one of them is accepted";

  for (size_t i = 0; i < rank; ++i) {
    int64_t begin = isExplicit ? (*pads)[i] : 0;
    int64_t end = isExplicit ? (*pads)[rank + i] : 0;
    int64_t stride = window.strides[i];
    auto reach = checkedMul(window.dilations[i], kernel[i] - 1);
    auto padded = checkedAdd(input[i], begin + end);
    if (!reach || !padded)
      return n.invalid() << "the window reaches farther than 64 bits count";
    *reach += 1;
    int64_t output;
    if (isSame) {
      output = (input[i] + stride - 1) / stride;
      int64_t total =
          std::max<int64_t>(0, (output - 1) * stride + *reach - input[i]);
      begin = isUpper ? total / 2 : total - total / 2;
      end = total - begin;
    } else {
      int64_t room = *padded - *reach;
      output = (isCeil ? llvm::divideCeilSigned(room, stride)
                       : llvm::divideFloorSigned(room, stride)) +
               1;
      if (output < 1)
        return n.invalid() << "a window of reach " << *reach
                           << " does not fit the padded input of extent "
                           << *padded << " in spatial dim " << i;
      // A window that would start behind the input, in its padding, is left
      // out.
      if (isCeil && (output - 1) * stride >= input[i] + begin)
        --output;
    }
    window.padsBegin.push_back(begin);
    window.padsEnd.push_back(end);
    window.output.push_back(output);
  }
  return window;
}
