//===- Solver.cpp - From a problem to a proved placement ------------------===//

#include "memplan/Solver/Solver.h"

#include "Bodies.h"
#include "Budget.h"
#include "ComponentSolver.h"
#include "FirstFit.h"
#include "PairSearch.h"
#include "PeakRepair.h"
#include "Preferences.h"

#include <algorithm>
#include <numeric>

namespace memplan::solver {

Solver::~Solver() = default;

namespace {

class PortfolioSolver : public Solver {
public:
  explicit PortfolioSolver(SolverOptions options) : options(options) {}
  Outcome solve(const Problem &problem) override;

private:
  SolverOptions options;
};

/// One call of `solve`, or of the core of one.
class Run {
public:
  Run(const Problem &problem, const SolverOptions &options, Budget budget)
      : problem(problem), options(options), budget(budget),
        bodies(collectBodies(problem)) {
    allRectangles =
        std::all_of(bodies.list.begin(), bodies.list.end(),
                    [&](const Body &body) { return isRectangle(body); });
  }

  /// With a goal no lower height is looked for.
  Solution run(std::optional<int64_t> givenGoal = std::nullopt);

private:
  bool isDone() const { return height <= goal; }
  bool canDive() const;
  bool isRectangle(const Body &body) const;
  void take(std::vector<int64_t> newPlaces);
  bool placeGreedily();
  bool isTooLargeToSearch() const;
  void repairPeaks();
  void solveRectangles();
  std::vector<std::vector<int>> splitByTime() const;
  int64_t heightOf(const std::vector<int> &component) const;
  int64_t solveComponent(const std::vector<int> &component);
  void solveBodies();
  Solution finish();

  const Problem &problem;
  const SolverOptions options;
  Budget budget;
  const Bodies bodies;
  bool allRectangles = false;
  int64_t lowerBound = 0;
  /// What to stop at.
  int64_t goal = 0;
  std::vector<int64_t> places;
  int64_t height = std::numeric_limits<int64_t>::max();
  bool isCore = false;
};

} // namespace

Outcome PortfolioSolver::solve(const Problem &problem) {
  std::string error = checkProblem(problem);
  if (!error.empty())
    return {std::nullopt, error};
  return {Run(problem, options, Budget(options)).run(), ""};
}

Solution Run::run(std::optional<int64_t> givenGoal) {
  lowerBound = computeLowerBound(problem);
  goal = std::max(lowerBound,
                  givenGoal.value_or(problem.capacity.value_or(lowerBound)));
  isCore = givenGoal.has_value();
  if (!placeGreedily()) {
    Solution none;
    none.status = Status::Infeasible;
    none.lowerBound = lowerBound;
    none.steps = budget.getUsed();
    return none;
  }
  // With less than the bound's room there is nothing to be found.
  bool isHopeless = problem.capacity && *problem.capacity < lowerBound;
  if (!isDone() && !isHopeless) {
    if (!isCore && isTooLargeToSearch())
      repairPeaks();
    if (allRectangles)
      solveRectangles();
    else
      solveBodies();
  }
  return finish();
}

void Run::take(std::vector<int64_t> newPlaces) {
  int64_t newHeight = computeHeight(bodies, newPlaces);
  if (!places.empty() && newHeight >= height)
    return;
  height = newHeight;
  places = std::move(newPlaces);
}

/// False if fixed bodies collide.
bool Run::placeGreedily() {
  FirstFit firstFit(bodies);
  if (firstFit.doFixedCollide())
    return false;
  for (GreedyOrder order : allGreedyOrders) {
    auto found = firstFit.run(order, goal, height, budget,
                              /*mayStop=*/!places.empty());
    if (found)
      take(std::move(*found));
    // What can be searched needs no second guess.
    if (isDone() || canDive())
      break;
  }
  return true;
}

/// Whether something above the goal has no exact search of its own.
bool Run::isTooLargeToSearch() const {
  if (!allRectangles)
    return true;
  std::vector<std::vector<int>> components = splitByTime();
  return std::any_of(components.begin(), components.end(),
                     [&](const std::vector<int> &component) {
                       return component.size() >
                                  ComponentSolver::maxSearchItems &&
                              heightOf(component) > goal;
                     });
}

void Run::repairPeaks() {
  PeakRepair repair(problem, bodies,
                    [&](const Problem &core, int64_t coreGoal, Budget part) {
                      return Run(core, options, part).run(coreGoal);
                    });
  int64_t bound = repair.run(places, goal, budget);
  lowerBound = std::max(lowerBound, bound);
  goal = std::max(goal, lowerBound);
  height = computeHeight(bodies, places);
}

int64_t Run::heightOf(const std::vector<int> &component) const {
  int64_t result = 0;
  for (int b : component)
    result = std::max(result, places[b] + bodies.list[b].extent);
  return result;
}

bool Run::canDive() const {
  return allRectangles && std::all_of(bodies.list.begin(), bodies.list.end(),
                                      [](const Body &body) {
                                        return body.fixedPlace == noOffset;
                                      });
}

/// One part that takes all bytes of its body, anywhere.
bool Run::isRectangle(const Body &body) const {
  if (body.numParts() == 0)
    return true;
  const OccupancyIndex::Part &part = bodies.parts[body.firstPart];
  return body.numParts() == 1 && body.residue == 0 && part.low == 0 &&
         part.high == body.extent;
}

/// Bodies that take bytes, by start, cut where none goes on.
std::vector<std::vector<int>> Run::splitByTime() const {
  std::vector<int> order;
  for (int b = 0; b < bodies.size(); ++b)
    if (bodies.list[b].numParts() > 0)
      order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return bodies.list[a].lower < bodies.list[b].lower;
  });
  std::vector<std::vector<int>> components;
  int64_t end = 0;
  for (int b : order) {
    const Body &body = bodies.list[b];
    if (components.empty() || body.lower >= end) {
      components.emplace_back();
      end = body.upper;
    }
    components.back().push_back(b);
    end = std::max(end, body.upper);
  }
  return components;
}

/// Parts of time that share no body are problems of their own. The whole is as
/// high as the highest, so none need be lower than another must be.
void Run::solveRectangles() {
  std::vector<std::vector<int>> components = splitByTime();
  std::stable_sort(
      components.begin(), components.end(),
      [&](const auto &a, const auto &b) { return heightOf(a) > heightOf(b); });
  for (const std::vector<int> &component : components) {
    if (heightOf(component) <= goal)
      continue;
    if (budget.isSpent())
      break;
    int64_t bound = solveComponent(component);
    lowerBound = std::max(lowerBound, bound);
    if (problem.capacity && bound > *problem.capacity)
      break;
    // What this one can't do, the others needn't.
    goal = std::max(goal, heightOf(component));
  }
  height = computeHeight(bodies, places);
}

/// Lowers a component's places; returns a proved lower bound on its height.
int64_t Run::solveComponent(const std::vector<int> &component) {
  int64_t grain = 0;
  for (int b : component)
    grain = std::gcd(grain, bodies.list[b].modulus);
  std::vector<Strip::Item> items;
  Bracket bracket;
  bracket.lowerBound = 0;
  for (int b : component) {
    const Body &body = bodies.list[b];
    int64_t size = alignUp(body.extent, grain);
    Strip::Item item{body.lower, body.upper, size, body.modulus};
    item.fixedOffset = body.fixedPlace;
    item.padding = size - body.extent;
    items.push_back(item);
    bracket.offsets.push_back(places[b]);
    bracket.height = std::max(bracket.height, places[b] + body.extent);
  }
  Strip strip = buildStrip(items);
  ComponentSolver solver(strip, options, budget);
  if (problem.capacity)
    solver.reach(bracket, goal);
  else
    solver.minimize(bracket, goal);
  for (size_t i = 0; i < component.size(); ++i)
    places[component[i]] = bracket.offsets[i];
  return bracket.lowerBound;
}

/// Bodies of any shape: bisection with an exact search for small problems,
/// which looks at all pairs of parts before it begins.
void Run::solveBodies() {
  constexpr int maxBodies = 256;
  constexpr size_t maxParts = 4096;
  if (bodies.size() > maxBodies || bodies.parts.size() > maxParts ||
      budget.isSpent())
    return;
  PairSearch search(bodies);
  int64_t target = goal;
  while (height > goal && lowerBound <= goal && !budget.isSpent()) {
    SearchResult result = search.run(target, budget.getPiece(int64_t{1} << 40));
    budget.charge(search.getSteps());
    if (result == SearchResult::Limit)
      return;
    if (result == SearchResult::Found)
      take(search.getPlaces());
    else
      lowerBound = target + 1;
    if (!problem.capacity)
      goal = lowerBound;
    target = lowerBound + (height - lowerBound) / 2;
    if (problem.capacity)
      target = goal;
  }
}

Solution Run::finish() {
  movePreferred(problem, bodies, height, places, budget);
  // What was on top may have found a wanted place further down.
  height = computeHeight(bodies, places);
  Solution solution;
  solution.offsets = toOffsets(bodies, places);
  solution.height = height;
  solution.lowerBound = lowerBound;
  solution.steps = budget.getUsed();
  bool fits = !problem.capacity || height <= *problem.capacity;
  if (fits)
    solution.status = height == lowerBound ? Status::Optimal : Status::Feasible;
  else
    solution.status =
        lowerBound > *problem.capacity ? Status::Infeasible : Status::Limit;
  return solution;
}

std::unique_ptr<Solver> createSolver(SolverOptions options) {
  return std::make_unique<PortfolioSolver>(options);
}

} // namespace memplan::solver
