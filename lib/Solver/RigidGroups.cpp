//===- RigidGroups.cpp - Where a rigid group may lie ----------------------===//

#include "RigidGroups.h"

#include "memplan/Support/CheckedMath.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

/// Products of two 63-bit numbers.
using Wide = __int128;

/// The x in [0, modulus) with a * x = 1 modulo modulus; gcd(a, modulus) is 1.
static int64_t inverse(int64_t a, int64_t modulus) {
  Wide remainder = a % modulus, nextRemainder = modulus;
  Wide factor = 1, nextFactor = 0;
  while (nextRemainder != 0) {
    Wide quotient = remainder / nextRemainder;
    remainder -= quotient * nextRemainder;
    std::swap(remainder, nextRemainder);
    factor -= quotient * nextFactor;
    std::swap(factor, nextFactor);
  }
  return static_cast<int64_t>((factor % modulus + modulus) % modulus);
}

namespace {

enum class Merged { Yes, Contradiction, TooLarge };

/// Works on one group whose members are listed.
class GroupBuilder {
public:
  GroupBuilder(const Problem &problem, const BufferName &name,
               RigidGroup &group)
      : problem(problem), name(name), group(group) {}

  std::string run();

private:
  /// How far above the lowest member a member lies.
  int64_t distance(size_t i) const {
    return problem.buffers[i].group->offset - group.lowest;
  }

  std::string measure();
  std::string alignAll();
  std::string fixAll();
  Merged mergeAlignment(size_t i);
  std::string describeContradiction(size_t i) const;

  const Problem &problem;
  const BufferName &name;
  RigidGroup &group;
};

} // namespace

std::string GroupBuilder::measure() {
  group.lowest = INT64_MAX;
  for (size_t i : group.members)
    group.lowest = std::min(group.lowest, problem.buffers[i].group->offset);
  for (size_t i : group.members) {
    auto end = checkedAdd(distance(i), problem.buffers[i].size);
    if (!end)
      return name(i) + " has group offset " +
             std::to_string(problem.buffers[i].group->offset) +
             ", which together with its size does not fit 63 bits";
    group.extent = std::max(group.extent, *end);
  }
  return "";
}

/// Adds "place = -distance modulo alignment" to what is known of the place (the
/// Chinese remainder theorem for moduli that may share factors).
Merged GroupBuilder::mergeAlignment(size_t i) {
  int64_t alignment = problem.buffers[i].alignment;
  int64_t rest = distance(i) % alignment;
  int64_t wanted = rest == 0 ? 0 : alignment - rest;
  int64_t divisor = std::gcd(group.modulus, alignment);
  int64_t gap = wanted - group.residue; // both in [0, 2^63)
  if (gap % divisor != 0)
    return Merged::Contradiction;
  int64_t cofactor = alignment / divisor;
  auto modulus = checkedMul(group.modulus, cofactor);
  if (!modulus)
    return Merged::TooLarge;
  Wide turns = Wide(gap / divisor) * inverse(group.modulus / divisor, cofactor);
  turns = (turns % cofactor + cofactor) % cofactor;
  group.residue += static_cast<int64_t>(turns * group.modulus);
  group.modulus = *modulus;
  return Merged::Yes;
}

/// Congruences that cannot be met together contain two that cannot.
std::string GroupBuilder::describeContradiction(size_t i) const {
  for (size_t j : group.members) {
    int64_t divisor =
        std::gcd(problem.buffers[i].alignment, problem.buffers[j].alignment);
    if ((distance(i) - distance(j)) % divisor != 0)
      return name(i) + " cannot be aligned to " +
             std::to_string(problem.buffers[i].alignment) + " while " +
             name(j) + " in the same group is aligned to " +
             std::to_string(problem.buffers[j].alignment) +
             ": their distance is " + std::to_string(distance(i) - distance(j));
  }
  return name(i) + " cannot be aligned together with its group";
}

std::string GroupBuilder::alignAll() {
  for (size_t i : group.members)
    switch (mergeAlignment(i)) {
    case Merged::Yes:
      break;
    case Merged::Contradiction:
      return describeContradiction(i);
    case Merged::TooLarge:
      return "the alignments of the group of " + name(i) +
             " have no common multiple that fits 63 bits";
    }
  return "";
}

std::string GroupBuilder::fixAll() {
  size_t decider = 0;
  for (size_t i : group.members) {
    if (!problem.buffers[i].fixedOffset)
      continue;
    int64_t place = *problem.buffers[i].fixedOffset - distance(i);
    if (!group.fixedPlace) {
      group.fixedPlace = place;
      decider = i;
    }
    if (place != *group.fixedPlace)
      return name(i) + " and " + name(decider) +
             " are fixed at offsets that their group offsets contradict";
  }
  if (!group.fixedPlace)
    return "";
  for (size_t i : group.members) {
    auto offset = checkedAdd(*group.fixedPlace, distance(i));
    if (!offset || *offset < 0 || *offset % problem.buffers[i].alignment != 0)
      return name(i) + " would be put at offset " +
             (offset ? std::to_string(*offset) : "2^63 or more") + " by " +
             name(decider) + ", which is fixed; expected a non-negative " +
             "multiple of " + std::to_string(problem.buffers[i].alignment);
  }
  return "";
}

std::string GroupBuilder::run() {
  std::string fault = measure();
  if (fault.empty())
    fault = alignAll();
  if (fault.empty())
    fault = fixAll();
  return fault;
}

std::string collectGroups(const Problem &problem, const BufferName &name,
                          std::vector<RigidGroup> &groups) {
  std::vector<size_t> members;
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].group)
      members.push_back(i);
  std::stable_sort(members.begin(), members.end(), [&](size_t a, size_t b) {
    return problem.buffers[a].group->id < problem.buffers[b].group->id;
  });
  for (size_t i : members) {
    if (groups.empty() ||
        problem.buffers[groups.back().members.back()].group->id !=
            problem.buffers[i].group->id)
      groups.emplace_back();
    groups.back().members.push_back(i);
  }
  std::sort(groups.begin(), groups.end(),
            [](const RigidGroup &a, const RigidGroup &b) {
              return a.members.front() < b.members.front();
            });
  for (RigidGroup &group : groups)
    if (std::string fault = GroupBuilder(problem, name, group).run();
        !fault.empty())
      return fault;
  return "";
}

} // namespace memplan::solver
