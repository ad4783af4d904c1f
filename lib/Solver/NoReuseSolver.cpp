//===- NoReuseSolver.cpp - No byte used twice -----------------------------===//

#include "memplan/Solver/Solver.h"

#include "Bodies.h"

#include <algorithm>

namespace memplan::solver {

namespace {

class NoReuseSolver : public Solver {
public:
  Outcome solve(const Problem &problem) override {
    std::string error = checkProblem(problem);
    if (!error.empty())
      return {std::nullopt, error};
    // A fixed offset is a wish to share or to leave a gap; without reuse
    // neither has a meaning.
    for (size_t i = 0; i < problem.buffers.size(); ++i)
      if (problem.buffers[i].fixedOffset)
        return {std::nullopt, "buffer " + std::to_string(i) +
                                  " has a fixed offset, which a placement "
                                  "without reuse does not take"};
    Bodies bodies = collectBodies(problem);
    std::vector<int64_t> places;
    int64_t end = 0;
    for (const Body &body : bodies.list) {
      int64_t above = std::max<int64_t>(end - body.residue, 0);
      places.push_back(body.residue + alignUp(above, body.modulus));
      end = places.back() + body.extent;
    }
    Solution solution;
    solution.offsets = toOffsets(bodies, places);
    solution.height = computeHeight(bodies, places);
    solution.lowerBound = computeLowerBound(problem);
    bool fits = !problem.capacity || solution.height <= *problem.capacity;
    solution.status = !fits ? Status::Limit
                      : solution.height == solution.lowerBound
                          ? Status::Optimal
                          : Status::Feasible;
    if (!fits && solution.lowerBound > *problem.capacity)
      solution.status = Status::Infeasible;
    return {solution, ""};
  }
};

} // namespace

std::unique_ptr<Solver> createNoReuseSolver() {
  return std::make_unique<NoReuseSolver>();
}

} // namespace memplan::solver
