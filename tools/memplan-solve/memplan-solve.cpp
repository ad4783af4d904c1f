//===- memplan-solve.cpp - The solver on tables ---------------------------===//
//
// Reads buffers from CSV, places them and writes the table back with offsets;
// or checks a placement. docs/MemplanSolve.md describes the format.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"
#include "Run.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace memplan;

namespace {

cl::OptionCategory category("memplan-solve");

cl::list<std::string> inputs(cl::Positional, cl::OneOrMore,
                             cl::desc("<table.csv, or - for standard input>"),
                             cl::cat(category));

cl::opt<int64_t> capacity(
    "capacity",
    cl::desc("Look for any placement of at most this many bytes; without it, "
             "for the lowest one"),
    cl::value_desc("bytes"), cl::cat(category));

cl::opt<std::string>
    output("o",
           cl::desc("Where the table with offsets goes (default: standard "
                    "output; nowhere with --json or --check)"),
           cl::value_desc("out.csv"), cl::cat(category));

cl::opt<int64_t> effort(
    "effort",
    cl::desc("Bound on the work, in steps (about a nanosecond each); the same "
             "effort gives the same answer on any machine"),
    cl::value_desc("steps"), cl::init(solver::SolverOptions().effort),
    cl::cat(category));

cl::opt<int> jobs("jobs",
                  cl::desc("At most so many threads at a time (default: one "
                           "per core); the answer is "
                           "the same with any number"),
                  cl::value_desc("n"), cl::init(0), cl::cat(category));
cl::opt<double> timeLimit(
    "time-limit",
    cl::desc("Also stop after this long; the answer then depends on the "
             "machine"),
    cl::value_desc("seconds"), cl::cat(category));

cl::opt<bool> json("json",
                   cl::desc("One line of JSON per input on standard output"),
                   cl::cat(category));

cl::opt<std::string> svg("svg", cl::desc("Draw the placement"),
                         cl::value_desc("out.svg"), cl::cat(category));

cl::opt<bool> check("check",
                    cl::desc("Check the placement in the column 'offset' "
                             "instead of making one"),
                    cl::cat(category));

cl::opt<bool> quiet("q", cl::desc("No summary on standard error"),
                    cl::cat(category));

cl::extrahelp exitCodes(R"(
EXIT STATUS of memplan-solve (with several inputs, of the first that failed):

  0   done
  1   usage, or a file that cannot be read or written
  2   invalid input
  5   no placement: infeasible (proved), or not found within the effort
  6   --check found a fault
  70  internal error (please report it)
)");

/// What contradicts itself or is out of range, or nothing.
const char *findUsageError() {
  if (capacity.getNumOccurrences() > 0 && capacity < 0)
    return "--capacity must not be negative";
  if (effort < 0)
    return "--effort must not be negative";
  if (jobs < 0)
    return "--jobs must not be negative";
  if (timeLimit.getNumOccurrences() > 0 && !(timeLimit > 0))
    return "--time-limit must be positive";
  if (inputs.size() > 1 && !json)
    return "several inputs need --json";
  if (inputs.size() > 1 && !(output.empty() && svg.empty()))
    return "-o and --svg take one input";
  if (check && !output.empty())
    return "--check writes no table; leave out -o";
  if (json && (output == "-" || svg == "-"))
    return "--json and a file both want standard output";
  if (output == svg && !svg.empty())
    return "-o and --svg name the same file";
  return nullptr;
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  registerRuleFlags(category);
  cl::ParseCommandLineOptions(
      argc, argv, "memplan-solve: give buffers offsets in one block\n");
  if (const char *message = findUsageError()) {
    errs() << "memplan-solve: " << message << "\n";
    return static_cast<int>(ExitCode::UsageOrIO);
  }
  RunOptions options;
  options.output = output;
  if (output.empty() && svg != "-" && !json && !check)
    options.output = "-";
  options.svg = svg;
  if (capacity.getNumOccurrences() > 0)
    options.capacity = capacity;
  options.solver.effort = effort;
  options.solver.threads = jobs;
  if (timeLimit.getNumOccurrences() > 0)
    options.solver.timeLimit = timeLimit;
  options.solver.rules = rulesFromFlags();
  options.check = check;
  options.json = json;
  options.quiet = quiet;
  ExitCode first = ExitCode::Done;
  for (const std::string &input : inputs) {
    options.input = input;
    ExitCode code = run(options);
    outs().flush();
    if (first == ExitCode::Done)
      first = code;
  }
  return static_cast<int>(first);
}
