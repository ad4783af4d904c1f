//===- Run.cpp - From a table to a placement ------------------------------===//

#include "Run.h"

#include "OutputFiles.h"
#include "Report.h"
#include "Svg.h"
#include "memplan/Solver/Checker.h"
#include "memplan/Solver/Csv.h"
#include "memplan/Support/CheckedMath.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <chrono>

using namespace llvm;

namespace memplan {

namespace {

/// One run; each step returns `Done` or has said why not.
class Run {
public:
  explicit Run(const RunOptions &options)
      : options(options),
        file(options.input == "-" ? "<stdin>" : options.input) {}

  ExitCode run();

private:
  ExitCode fail(ExitCode code, const Twine &what);
  ExitCode read();
  ExitCode solve();
  ExitCode checkGiven();
  ExitCode reportFailure();
  ExitCode write();
  void report();
  std::string findFault() const {
    return solver::checkSolution(table->problem, solution, [&](size_t buffer) {
      return table->nameOf(buffer);
    });
  }

  const RunOptions &options;
  std::string file;
  std::optional<solver::CsvTable> table;
  solver::Solution solution;
  double seconds = 0;
};

} // namespace

ExitCode Run::fail(ExitCode code, const Twine &what) {
  std::string message = what.str();
  errs() << "memplan-solve: " << file << ": " << message << "\n";
  if (options.json)
    printJsonError(outs(), file, message);
  return code;
}

ExitCode Run::read() {
  auto buffer = MemoryBuffer::getFileOrSTDIN(options.input, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(ExitCode::UsageOrIO,
                "cannot read: " + buffer.getError().message());
  solver::CsvOutcome outcome =
      solver::readCsv((*buffer)->getBuffer().str(),
                      options.check ? solver::OffsetColumn::Placement
                                    : solver::OffsetColumn::Fixed);
  if (!outcome)
    return fail(ExitCode::InvalidInput, outcome.error);
  table = std::move(outcome.table);
  table->problem.capacity = options.capacity;
  return ExitCode::Done;
}

ExitCode Run::checkGiven() {
  solver::CsvPlacement placement = solver::placementOf(*table);
  if (!placement.error.empty())
    return fail(ExitCode::InvalidInput,
                placement.error + ", but --check needs one for each row");
  solution.offsets = std::move(placement.offsets);
  solution.lowerBound = solver::computeLowerBound(table->problem);
  for (const auto &[i, buffer] : enumerate(table->problem.buffers)) {
    auto end = checkedAdd(solution.offsets[i], buffer.size);
    solution.height = std::max(solution.height, end.value_or(INT64_MAX));
  }
  if (std::string fault = findFault(); !fault.empty())
    return fail(ExitCode::CheckFailed, "check failed: " + fault);
  if (solution.height == solution.lowerBound)
    solution.status = solver::Status::Optimal;
  return ExitCode::Done;
}

ExitCode Run::solve() {
  auto start = std::chrono::steady_clock::now();
  auto engine = solver::createSolver(options.solver);
  solver::Outcome outcome = engine->solve(table->problem);
  seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  // The table is a legal problem already.
  if (!outcome)
    return fail(ExitCode::Internal, "internal error: " + outcome.error);
  solution = std::move(*outcome.solution);
  if (std::string fault = findFault(); !fault.empty())
    return fail(ExitCode::Internal,
                "internal error: wrong placement: " + fault);
  return reportFailure();
}

/// A search without a placement to write is not an error of the JSON line,
/// which says so by its status.
ExitCode Run::reportFailure() {
  raw_ostream &os = errs();
  switch (solution.status) {
  case solver::Status::Optimal:
  case solver::Status::Feasible:
    return ExitCode::Done;
  case solver::Status::Infeasible:
    os << "memplan-solve: " << file << ": infeasible: proved that there is no "
       << "placement";
    if (options.capacity)
      os << " within the capacity " << *options.capacity << " (lower bound "
         << solution.lowerBound << ")";
    else
      os << ", since fixed offsets collide";
    os << "\n";
    return ExitCode::NoPlacement;
  case solver::Status::Limit:
    os << "memplan-solve: " << file << ": not found: no placement within the "
       << "capacity " << *options.capacity << " before the effort was spent "
       << "(lower bound " << solution.lowerBound;
    if (!solution.offsets.empty())
      os << ", lowest height found " << solution.height;
    os << ")\n";
    return ExitCode::NoPlacement;
  }
  return ExitCode::Internal;
}

void Run::report() {
  Report report = {file, *table, solution, seconds};
  if (options.json)
    printJson(outs(), report);
  else if (!options.quiet)
    printSummary(errs(), report);
}

ExitCode Run::write() {
  OutputFiles files;
  Error failure = Error::success();
  if (!options.output.empty())
    failure = files.add(options.output, [&](raw_ostream &os) {
      os << solver::writeCsv(*table, solution.offsets);
      return Error::success();
    });
  if (!failure && !options.svg.empty())
    failure = files.add(options.svg, [&](raw_ostream &os) {
      writeSvg(os, file, *table, solution);
      return Error::success();
    });
  if (!failure)
    failure = files.commit();
  if (failure)
    return fail(ExitCode::UsageOrIO, toString(std::move(failure)));
  return ExitCode::Done;
}

ExitCode Run::run() {
  ExitCode code = read();
  if (code == ExitCode::Done)
    code = options.check ? checkGiven() : solve();
  if (code == ExitCode::Done)
    code = write();
  if (code == ExitCode::Done || code == ExitCode::NoPlacement)
    report();
  return code;
}

ExitCode run(const RunOptions &options) { return Run(options).run(); }

} // namespace memplan
