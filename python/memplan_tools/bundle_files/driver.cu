//===- driver.cu - loads, runs and measures one emitted model ------------===//
//
// Knows a model only by its C API: compile with -DMODEL=<its C name> and
// -DMODEL_HEADER="\"<its header>\"", by nvcc or, as C++, by a host compiler.
// With -DMODEL_READS_BACK, for a model whose runs wait for values from the
// device, no graph is made: such a run can't be captured.
//
//   driver WEIGHTS RUNS OUTPUT_FOLDER INPUT_FILE...
//
// writes OUTPUT_FOLDER/0.bin, 1.bin, ... and prints one JSON object. RUNS more
// runs follow the first. On the GPU it also replays the run as a CUDA graph.
//
//===----------------------------------------------------------------------===//

#include MODEL_HEADER
#include "memplan/Runtime/Memory.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define API(function) JOIN(MODEL, function)

using Bytes = std::vector<char>;

#ifdef __CUDACC__
// The linker's --wrap sends the model's calls through these, so that they are
// counted.
static long allocations = 0, frees = 0, synchronisations = 0;
extern "C" {
cudaError_t __real_cudaMalloc(void **, size_t);
cudaError_t __wrap_cudaMalloc(void **p, size_t n) {
  return ++allocations, __real_cudaMalloc(p, n);
}
cudaError_t __real_cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t __wrap_cudaMallocAsync(void **p, size_t n, cudaStream_t s) {
  return ++allocations, __real_cudaMallocAsync(p, n, s);
}
cudaError_t __real_cudaFree(void *);
cudaError_t __wrap_cudaFree(void *p) { return ++frees, __real_cudaFree(p); }
cudaError_t __real_cudaStreamSynchronize(cudaStream_t);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t s) {
  return ++synchronisations, __real_cudaStreamSynchronize(s);
}
cudaError_t __real_cudaDeviceSynchronize();
cudaError_t __wrap_cudaDeviceSynchronize() {
  return ++synchronisations, __real_cudaDeviceSynchronize();
}
}

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "driver: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// Bytes of device memory in use by everybody, from the driver.
static long long usedMemory() {
  size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return static_cast<long long>(total - available);
}
#else
struct CallCounts {
  long allocations, frees, synchronisations;
};
static CallCounts hostCalls() {
  memplan::rt::HostCounters c = memplan::rt::hostCounters();
  return {long(c.allocations), long(c.frees), long(c.synchronisations)};
}
#define allocations hostCalls().allocations
#define frees hostCalls().frees
#define synchronisations hostCalls().synchronisations
#endif

static void check(memplan_status status, const char *what) {
  if (status == MEMPLAN_OK)
    return;
  std::fprintf(stderr, "driver: %s: %s: %s\n", what,
               memplan_status_name(status), memplan_last_error());
  std::exit(1);
}

static void require(bool holds, const std::string &otherwise) {
  if (holds)
    return;
  std::fprintf(stderr, "driver: %s\n", otherwise.c_str());
  std::exit(1);
}

static Bytes readFile(const char *path, size_t bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  require(bool(file), std::string("can't open ") + path);
  size_t size = size_t(file.tellg());
  require(size == bytes, std::string(path) + " has " + std::to_string(size) +
                             " bytes, the model wants " +
                             std::to_string(bytes));
  Bytes data(size);
  file.seekg(0);
  file.read(data.data(), std::streamsize(size));
  return data;
}

/// The model with its inputs and outputs, which are the caller's (so: ours).
class Session {
public:
  Session(const char *weights, char **inputFiles) {
    for (size_t i = 0; i < API(_num_inputs)(); ++i) {
      const memplan_tensor_info &info = API(_inputs)[i];
      Bytes data = readFile(inputFiles[i], info.bytes);
      inputs.push_back(allocate(info.name, info.bytes));
      check(memplan::rt::copyToDevice(info.name, inputs.back(), data.data(),
                                      info.bytes),
            "copy of an input");
    }
    for (size_t i = 0; i < API(_num_outputs)(); ++i)
      outputs.push_back(
          allocate(API(_outputs)[i].name, API(_outputs)[i].bytes));
#ifdef __CUDACC__
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
          "cudaStreamCreate");
    usedBefore = usedMemory();
#endif
    long before = allocations;
    check(API(_load)(&model, weights, nullptr), "load");
    loadAllocations = allocations - before;
#ifdef __CUDACC__
    usedAfter = usedMemory();
#endif
  }

  ~Session() {
    API(_free)(model);
    for (void *p : inputs)
      memplan::rt::deviceFree(p);
    for (void *p : outputs)
      memplan::rt::deviceFree(p);
  }

  void run() {
    check(API(_run)(model, inputs.data(), outputs.data(), stream), "run");
  }
  void wait() { check(memplan::rt::synchronize("wait", stream), "wait"); }

  std::vector<Bytes> results() {
    std::vector<Bytes> all;
    for (size_t i = 0; i < outputs.size(); ++i) {
      all.emplace_back(API(_outputs)[i].bytes);
      check(memplan::rt::copyToHost("output", all.back().data(), outputs[i],
                                    all.back().size()),
            "copy of an output");
    }
    return all;
  }

  /// All ones: NaN for floats, so that an element left unwritten shows.
  void spoilOutputs() {
    for (size_t i = 0; i < outputs.size(); ++i) {
      Bytes spoiled(API(_outputs)[i].bytes, char(0xFF));
      check(memplan::rt::copyToDevice("output", outputs[i], spoiled.data(),
                                      spoiled.size()),
            "spoiling an output");
    }
  }

  cudaStream_t stream = nullptr;
  long loadAllocations = 0;
  long long usedBefore = 0, usedAfter = 0;

private:
  static void *allocate(const char *what, size_t bytes) {
    void *p = nullptr;
    check(memplan::rt::deviceAllocate(what, bytes, &p), "allocation");
    return p;
  }

  JOIN(MODEL, _t) *model = nullptr;
  std::vector<void *> inputs, outputs;
};

using Clock = std::chrono::steady_clock;
static double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

#if defined(__CUDACC__) && !defined(MODEL_READS_BACK)
/// Captures one run, replays it and compares; prints its part of the JSON.
static void measureGraph(Session &session, const std::vector<Bytes> &expected,
                         long runs) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(
      cudaStreamBeginCapture(session.stream, cudaStreamCaptureModeThreadLocal),
      "begin of capture");
  session.run();
  check(cudaStreamEndCapture(session.stream, &graph), "end of capture");
  size_t nodes = 0;
  check(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  session.spoilOutputs();
  check(cudaGraphLaunch(executable, session.stream), "cudaGraphLaunch");
  session.wait();
  bool same = session.results() == expected;
  Clock::time_point start = Clock::now();
  for (long i = 0; i < runs; ++i)
    check(cudaGraphLaunch(executable, session.stream), "cudaGraphLaunch");
  session.wait();
  double milliseconds = millisecondsSince(start);
  std::printf(", \"graph_nodes\": %zu, \"graph_same\": %s, \"graph_ms\": %.6f",
              nodes, same ? "true" : "false",
              milliseconds / double(std::max(1L, runs)));
  check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}
#endif

int main(int argc, char **argv) {
  require(argc >= 4, "usage: driver WEIGHTS RUNS OUTPUT_FOLDER INPUT_FILE...");
  require(size_t(argc - 4) == API(_num_inputs)(),
          "the model has " + std::to_string(API(_num_inputs)()) +
              " inputs, got " + std::to_string(argc - 4) + " files");
  long runs = std::atol(argv[2]);
  std::string folder = argv[3];

#ifdef __CUDACC__
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "no CUDA device");
  std::printf("{\"device\": \"%s\", ", device.name);
#else
  std::printf("{\"device\": \"host\", ");
#endif

  Session session(argv[1], argv + 4);
  session.spoilOutputs();
  long allocationsBefore = allocations, freesBefore = frees,
       synchronisationsBefore = synchronisations;
  session.run();
  long runAllocations = allocations - allocationsBefore,
       runFrees = frees - freesBefore;
  long runSynchronisations = synchronisations - synchronisationsBefore;
  session.wait();
  std::vector<Bytes> results = session.results();
  for (size_t i = 0; i < results.size(); ++i) {
    std::ofstream file(folder + "/" + std::to_string(i) + ".bin",
                       std::ios::binary);
    file.write(results[i].data(), std::streamsize(results[i].size()));
    require(bool(file.flush()), "can't write to " + folder);
  }

  std::printf("\"weights_bytes\": %zu, \"arena_bytes\": %zu, "
              "\"load_allocations\": %ld, \"run_allocations\": %ld, "
              "\"run_frees\": %ld, \"run_synchronisations\": %ld",
              API(_weights_bytes)(), API(_arena_bytes)(),
              session.loadAllocations, runAllocations, runFrees,
              runSynchronisations);
#ifdef __CUDACC__
  std::printf(", \"load_memory\": %lld",
              session.usedAfter - session.usedBefore);
  long long usedAfterFirst = usedMemory(), usedMost = usedAfterFirst;
#endif

  Clock::time_point start = Clock::now();
  for (long i = 0; i < runs; ++i) {
    session.run();
#ifdef __CUDACC__
    if (i % 100 == 0)
      usedMost = std::max(usedMost, usedMemory());
#endif
  }
  session.wait();
  double milliseconds = millisecondsSince(start);
#ifdef __CUDACC__
  usedMost = std::max(usedMost, usedMemory());
  std::printf(", \"first_run_memory\": %lld, \"run_growth\": %lld",
              usedAfterFirst - session.usedAfter, usedMost - usedAfterFirst);
#endif
  bool same = session.results() == results;
  std::printf(", \"runs\": %ld, \"runs_same\": %s", runs,
              same ? "true" : "false");
  if (runs > 0)
    std::printf(", \"run_ms\": %.6f", milliseconds / double(runs));
#if defined(__CUDACC__) && !defined(MODEL_READS_BACK)
  measureGraph(session, results, runs);
#endif
  std::printf("}\n");
  return 0;
}
