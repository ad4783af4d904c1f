//===- SolverBenchmark.cpp - Time and quality of the solver ---------------===//
//
// Each benchmark is one instance, solved from scratch. Counters: `ratio` is
// height / lower bound, `optimal` 1 if that was proved, `steps` the effort.
//
//   SolverBenchmark                                 generated instances
//   MEMPLAN_SOLVER_DATA=DIR SolverBenchmark         and the files of DIR
//
// A file NAME.CAPACITY.csv is also solved for that capacity.
//
//===----------------------------------------------------------------------===//

#include "memplan/Solver/Checker.h"
#include "memplan/Solver/Csv.h"
#include "memplan/Solver/Instances.h"
#include "memplan/Solver/Solver.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace memplan::solver;

namespace {

void run(benchmark::State &state, const Problem &problem,
         const SolverOptions &options) {
  Solution solution;
  for (auto _ : state) {
    Outcome outcome = createSolver(options)->solve(problem);
    if (!outcome) {
      state.SkipWithError(outcome.error.c_str());
      return;
    }
    solution = *outcome.solution;
  }
  std::string fault = checkSolution(problem, solution);
  if (!fault.empty())
    state.SkipWithError(fault.c_str());
  state.counters["buffers"] = static_cast<double>(problem.buffers.size());
  state.counters["height"] = static_cast<double>(solution.height);
  state.counters["bound"] = static_cast<double>(solution.lowerBound);
  state.counters["ratio"] = solution.lowerBound
                                ? static_cast<double>(solution.height) /
                                      static_cast<double>(solution.lowerBound)
                                : 1;
  state.counters["optimal"] = solution.status == Status::Optimal;
  state.counters["steps"] = static_cast<double>(solution.steps);
}

void add(const std::string &name, Problem problem, SolverOptions options = {}) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State &state) {
    run(state, problem, options);
  })->Unit(benchmark::kMillisecond);
}

/// NAME.CAPACITY.csv
std::optional<int64_t> readCapacity(const std::filesystem::path &path) {
  std::string digits = path.stem().extension().string();
  if (digits.size() < 2 ||
      digits.find_first_not_of("0123456789", 1) != std::string::npos)
    return std::nullopt;
  return std::strtoll(digits.c_str() + 1, nullptr, 10);
}

bool addFiles(const char *folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".csv")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path &file : files) {
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    CsvOutcome parsed = readCsv(text.str(), OffsetColumn::Fixed);
    if (!parsed.error.empty()) {
      std::fprintf(stderr, "%s: %s\n", file.c_str(), parsed.error.c_str());
      return false;
    }
    Problem problem = parsed.table->problem;
    add("minimize/" + file.stem().string(), problem);
    if (auto capacity = readCapacity(file)) {
      problem.capacity = capacity;
      add("fit/" + file.stem().string(), problem);
    }
  }
  return true;
}

/// Full density at three kinds of coarseness; ten seeds each.
void addPerfectPackings() {
  struct Kind {
    const char *name;
    int64_t duration, sizeStep;
  };
  constexpr Kind kinds[] = {
      {"fine", 100000, 1}, {"coarse-time", 50, 1}, {"coarse", 50, 4096}};
  for (int64_t count : {50, 100, 200, 500})
    for (const Kind &kind : kinds)
      for (uint64_t seed = 0; seed < 10; ++seed) {
        PerfectPackingOptions options;
        options.count = count;
        options.duration = kind.duration;
        options.sizeStep = kind.sizeStep;
        options.seed = seed;
        std::optional<PerfectPacking> packing = makePerfectPacking(options);
        if (packing)
          add("perfect/" + std::string(kind.name) + "/" +
                  std::to_string(count) + "/" + std::to_string(seed),
              packing->problem);
      }
}

/// What each rule of the search is worth: the same packings with one rule off.
void addRules() {
  struct Rule {
    const char *name;
    bool SearchRules::*member;
  };
  constexpr Rule rules[] = {{"all", nullptr},
                            {"no-decompose", &SearchRules::decompose},
                            {"no-backjump", &SearchRules::backjump},
                            {"no-remember", &SearchRules::remember},
                            {"no-order-stacks", &SearchRules::orderStacks},
                            {"no-order-twins", &SearchRules::orderTwins}};
  for (const Rule &rule : rules) {
    SolverOptions options;
    if (rule.member)
      options.rules.*rule.member = false;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      PerfectPackingOptions packingOptions;
      packingOptions.count = 100;
      packingOptions.duration = 50;
      packingOptions.sizeStep = 1;
      packingOptions.seed = seed;
      auto packing = makePerfectPacking(packingOptions);
      if (packing)
        add("rules/" + std::string(rule.name) + "/" + std::to_string(seed),
            packing->problem, options);
    }
  }
}

void addScale() {
  for (int64_t count : {1000, 10000, 100000, 1000000}) {
    HeavyTailedOptions heavy;
    heavy.count = count;
    add("heavy-tailed/" + std::to_string(count), makeHeavyTailed(heavy));
  }
  // More alive at once: from longer lives, from fewer points of time, and with
  // an alignment that most sizes are below.
  HeavyTailedOptions dense;
  dense.count = 1'000'000;
  dense.maxSize = int64_t{1} << 30;
  for (int64_t minLifetime : {64, 100, 1000}) {
    dense.minLifetime = minLifetime;
    add("heavy-tailed/lives-from-" + std::to_string(minLifetime),
        makeHeavyTailed(dense));
  }
  dense.minLifetime = 4;
  dense.duration = 10'000;
  dense.maxLifetime = 10'000;
  for (int64_t alignment : {1, 512}) {
    dense.alignment = alignment;
    add("heavy-tailed/aligned-to-" + std::to_string(alignment),
        makeHeavyTailed(dense));
  }
  for (int64_t ops : {100, 1000, 10000, 100000}) {
    ModelTraceOptions trace;
    trace.ops = ops;
    add("model/" + std::to_string(ops), makeModelTrace(trace));
  }
}

} // namespace

int main(int argc, char **argv) {
  const char *folder = std::getenv("MEMPLAN_SOLVER_DATA");
  if (folder && !addFiles(folder))
    return 1;
  addPerfectPackings();
  addRules();
  addScale();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
