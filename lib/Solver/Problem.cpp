//===- Problem.cpp - Well-formedness --------------------------------------===//

#include "memplan/Solver/Problem.h"

#include "RigidGroups.h"
#include "memplan/Support/CheckedMath.h"

#include <algorithm>

namespace memplan::solver {

const char *toString(Status status) {
  switch (status) {
  case Status::Optimal:
    return "optimal";
  case Status::Feasible:
    return "feasible";
  case Status::Infeasible:
    return "infeasible";
  case Status::Limit:
    return "limit";
  }
  return "unknown";
}

/// The numbers of one buffer, whatever the others are. Returns what is to
/// follow the buffer's name.
static std::string checkNumbers(const Buffer &buffer) {
  if (buffer.lower > buffer.upper)
    return " has lifetime [" + std::to_string(buffer.lower) + ", " +
           std::to_string(buffer.upper) + "), expected lower <= upper";
  if (buffer.size < 0)
    return " has negative size " + std::to_string(buffer.size);
  if (buffer.alignment < 1)
    return " has alignment " + std::to_string(buffer.alignment) +
           ", expected at least 1";
  if (buffer.fixedOffset &&
      (*buffer.fixedOffset < 0 || *buffer.fixedOffset % buffer.alignment != 0))
    return " is fixed at offset " + std::to_string(*buffer.fixedOffset) +
           ", expected a non-negative multiple of " +
           std::to_string(buffer.alignment);
  if (buffer.preferredOffset && *buffer.preferredOffset < 0)
    return " prefers the negative offset " +
           std::to_string(*buffer.preferredOffset);
  if (buffer.group && buffer.group->offset < 0)
    return " has the negative group offset " +
           std::to_string(buffer.group->offset);
  return "";
}

namespace {

/// Sums up what a placement of one thing on top of the other, in any order,
/// can take.
class Total {
public:
  /// False if the sum does not fit. A thing on top of another begins at most
  /// alignment - 1 above its end.
  bool add(int64_t size, int64_t alignment) {
    auto aligned = checkedAlignTo(size, alignment);
    auto padded = aligned ? checkedAdd(*aligned, alignment - 1) : aligned;
    auto next = padded ? checkedAdd(sum, *padded) : padded;
    sum = next.value_or(sum);
    return next.has_value();
  }

  /// Whether everything can lie above a thing that is fixed at `offset`.
  bool fitsAbove(int64_t offset) const {
    return checkedAdd(offset, sum).has_value();
  }

private:
  int64_t sum = 0;
};

} // namespace

static std::string checkSums(const Problem &problem, const BufferName &name,
                             const std::vector<RigidGroup> &groups) {
  const std::vector<Buffer> &buffers = problem.buffers;
  Total total;
  auto tooLarge = [&](size_t i) {
    return "the sizes up to " + name(i) + " do not fit 63 bits";
  };
  for (size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i].group && !total.add(buffers[i].size, buffers[i].alignment))
      return tooLarge(i);
  for (const RigidGroup &group : groups)
    if (!total.add(group.extent, group.modulus))
      return tooLarge(group.members.back());
  auto tooHigh = [&](size_t i) {
    return "the fixed offset of " + name(i) +
           " and the sizes together do not fit 63 bits";
  };
  for (size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i].group && buffers[i].fixedOffset &&
        !total.fitsAbove(*buffers[i].fixedOffset))
      return tooHigh(i);
  for (const RigidGroup &group : groups)
    if (group.fixedPlace && !total.fitsAbove(*group.fixedPlace))
      return tooHigh(group.members.front());
  return "";
}

std::string checkProblem(const Problem &problem, const BufferName &name) {
  if (!name)
    return checkProblem(problem,
                        [](size_t i) { return "buffer " + std::to_string(i); });
  if (problem.capacity && *problem.capacity < 0)
    return "the capacity is negative: " + std::to_string(*problem.capacity);
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (std::string fault = checkNumbers(problem.buffers[i]); !fault.empty())
      return name(i) + fault;
  std::vector<RigidGroup> groups;
  std::string fault = collectGroups(problem, name, groups);
  return fault.empty() ? checkSums(problem, name, groups) : fault;
}

} // namespace memplan::solver
