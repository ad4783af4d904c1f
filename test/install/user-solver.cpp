// Two buffers that live at once and one that fits under both lifetimes' end:
// 96 + 32 bytes at time 1, then 64 alone.
#include "memplan/Solver/Solver.h"

int main() {
  memplan::solver::Problem problem;
  problem.buffers.resize(3);
  problem.buffers[0].upper = 2, problem.buffers[0].size = 96;
  problem.buffers[1].lower = 1, problem.buffers[1].upper = 2;
  problem.buffers[1].size = 32;
  problem.buffers[2].lower = 2, problem.buffers[2].upper = 3;
  problem.buffers[2].size = 64;
  auto outcome = memplan::solver::createSolver()->solve(problem);
  return outcome && outcome.solution->height == 128 ? 0 : 1;
}
