// The plug-in's door on CUDA's runtime, which is linked statically and finds the driver by itself.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "compute/backends/cuda/kernel_table.h"

namespace shoal::compute::cuda {

namespace {

constexpr int64_t kPinnedBytes = int64_t{4} << 20;  // Of one of the two buffers for uploads.

std::string describe_error(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

void put_text(const std::string& text, char* to, size_t bytes) {
  if (bytes > 0) std::snprintf(to, bytes, "%s", text.c_str());
}

}  // namespace

// Owns what it made on the card. Every call makes its card the thread's own first.
struct DoorSession {
  int card = 0;
  cudaStream_t stream = nullptr;
  std::string why;
  uint32_t* status = nullptr;         // On the card,
  uint32_t* pinned_status = nullptr;  // and what was read of it.
  std::byte* scratch = nullptr;
  std::byte* pinned[2] = {};  // What is being uploaded.
  cudaEvent_t taken[2] = {};  // When the card has it.
  size_t turn = 0;
  cudaGraphExec_t graphs[kDoorGraphs] = {};

  ~DoorSession() {
    cudaSetDevice(card);
    if (stream) cudaStreamSynchronize(stream);
    for (cudaGraphExec_t graph : graphs) {
      if (graph) cudaGraphExecDestroy(graph);
    }
    for (size_t i = 0; i < 2; ++i) {
      if (taken[i]) cudaEventDestroy(taken[i]);
      if (pinned[i]) cudaFreeHost(pinned[i]);
    }
    if (pinned_status) cudaFreeHost(pinned_status);
    if (status) cudaFree(status);
    if (scratch) cudaFree(scratch);
    if (stream) cudaStreamDestroy(stream);
  }

  // Lack of memory changes nothing; any other error leaves a context that fails for ever.
  DoorStatus check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return DoorStatus::kOk;
    cudaGetLastError();  // The next call shall not report it again.
    why = std::string(what) + ": " + describe_error(error);
    return error == cudaErrorMemoryAllocation ? DoorStatus::kNoSpace : DoorStatus::kLost;
  }
};

namespace {

#define SHOAL_DOOR_TRY(expression)                          \
  do {                                                      \
    const DoorStatus door_status = (expression);            \
    if (door_status != DoorStatus::kOk) return door_status; \
  } while (false)

int32_t cards(char* why, size_t why_bytes) {
  // Kernels are loaded at once: a worker that has locked itself in reads no more files.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) return count;
  cudaGetLastError();
  if (error == cudaErrorNoDevice) return 0;
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  std::string text = describe_error(error);
  if (error == cudaErrorInsufficientDriver && driver != 0) {
    text = "the NVIDIA driver knows CUDA " + std::to_string(driver / 1000) + "." +
           std::to_string(driver % 1000 / 10) + " and this build needs " +
           std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10);
  }
  put_text(text, why, why_bytes);
  return -1;
}

int32_t describe(int32_t card, DoorCard* result) {
  *result = DoorCard{};
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, card) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  put_text(properties.name, result->name, sizeof result->name);
  static_assert(sizeof result->uuid == sizeof properties.uuid.bytes);
  std::memcpy(result->uuid, properties.uuid.bytes, sizeof result->uuid);
  result->memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  result->major = properties.major;
  result->minor = properties.minor;
  result->processors = properties.multiProcessorCount;
  cudaDriverGetVersion(&result->driver_version);
  cudaRuntimeGetVersion(&result->runtime_version);
  int kilohertz = 0, bits = 0;
  if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, card) == cudaSuccess &&
      cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, card) == cudaSuccess) {
    result->bytes_per_second = int64_t{kilohertz} * 1000 * 2 * bits / 8;  // At both edges.
  }
  cudaGetLastError();
  return 0;
}

DoorStatus prepare(DoorSession& session) {
  SHOAL_DOOR_TRY(session.check(cudaSetDevice(session.card), "opening the card"));
  // A thread that waits sleeps, as the volunteer's processor is his own.
  cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
  SHOAL_DOOR_TRY(session.check(cudaStreamCreateWithFlags(&session.stream, cudaStreamNonBlocking),
                               "making a stream"));
  for (size_t i = 0; i < 2; ++i) {
    SHOAL_DOOR_TRY(session.check(cudaMallocHost(&session.pinned[i], kPinnedBytes),
                                 "locking memory for uploads"));
    SHOAL_DOOR_TRY(session.check(
        cudaEventCreateWithFlags(&session.taken[i], cudaEventDisableTiming | cudaEventBlockingSync),
        "making an event"));
  }
  SHOAL_DOOR_TRY(session.check(cudaMallocHost(&session.pinned_status, 4), "locking memory"));
  SHOAL_DOOR_TRY(session.check(cudaMalloc(&session.status, 256), "memory for the status"));
  SHOAL_DOOR_TRY(session.check(cudaMalloc(&session.scratch, kScratchBytes), "scratch memory"));
  // Says so here where the card is older, or newer, than all that was compiled.
  cudaFuncAttributes attributes{};
  const KernelEntry* first = kernel_entry(0);
  struct Probe final : Launcher {
    Kernel kernel = nullptr;
    void run(Kernel of_entry, uint, uint, uint, const Call&) override { kernel = of_entry; }
  } probe;
  Call call;
  first->enqueue(probe, call);
  return session.check(
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(probe.kernel)),
      "loading the kernels");
}

DoorSession* open(int32_t card, char* why, size_t why_bytes) {
  auto session = std::make_unique<DoorSession>();
  session->card = card;
  if (prepare(*session) != DoorStatus::kOk) {
    put_text(session->why, why, why_bytes);
    return nullptr;
  }
  return session.release();
}

void close(DoorSession* session) { std::unique_ptr<DoorSession> ended(session); }

const char* why(const DoorSession* session) { return session->why.c_str(); }

DoorStatus memory(DoorSession* session, int64_t* free_bytes, int64_t* total_bytes) {
  size_t free_now = 0, total = 0;
  SHOAL_DOOR_TRY(session->check(cudaSetDevice(session->card), "asking for memory"));
  SHOAL_DOOR_TRY(session->check(cudaMemGetInfo(&free_now, &total), "asking for memory"));
  *free_bytes = static_cast<int64_t>(free_now);
  *total_bytes = static_cast<int64_t>(total);
  return DoorStatus::kOk;
}

DoorStatus allocate(DoorSession* session, int64_t bytes, uint64_t* address) {
  void* memory = nullptr;
  SHOAL_DOOR_TRY(session->check(cudaSetDevice(session->card), "allocating"));
  SHOAL_DOOR_TRY(session->check(cudaMalloc(&memory, static_cast<size_t>(bytes)), "allocating"));
  const DoorStatus zeroed = session->check(
      cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), session->stream), "zeroing");
  if (zeroed != DoorStatus::kOk) cudaFree(memory);
  *address = reinterpret_cast<uint64_t>(memory);
  return zeroed;
}

void release(DoorSession* session, uint64_t address) {
  cudaSetDevice(session->card);
  cudaStreamSynchronize(session->stream);
  cudaFree(reinterpret_cast<void*>(address));
  cudaGetLastError();
}

// While the card takes one buffer, the next is filled.
DoorStatus write(DoorSession* session, uint64_t to, const void* from, int64_t bytes) {
  SHOAL_DOOR_TRY(session->check(cudaSetDevice(session->card), "uploading"));
  for (int64_t done = 0; done < bytes;) {
    const int64_t piece = std::min(bytes - done, kPinnedBytes);
    const size_t turn = session->turn++ % 2;
    SHOAL_DOOR_TRY(session->check(cudaEventSynchronize(session->taken[turn]), "uploading"));
    std::memcpy(session->pinned[turn], static_cast<const std::byte*>(from) + done,
                static_cast<size_t>(piece));
    SHOAL_DOOR_TRY(session->check(
        cudaMemcpyAsync(reinterpret_cast<std::byte*>(to) + done, session->pinned[turn],
                        static_cast<size_t>(piece), cudaMemcpyHostToDevice, session->stream),
        "uploading"));
    SHOAL_DOOR_TRY(
        session->check(cudaEventRecord(session->taken[turn], session->stream), "uploading"));
    done += piece;
  }
  return DoorStatus::kOk;
}

DoorStatus read(DoorSession* session, uint64_t from, void* to, int64_t bytes) {
  SHOAL_DOOR_TRY(session->check(cudaSetDevice(session->card), "downloading"));
  SHOAL_DOOR_TRY(session->check(
      cudaMemcpyAsync(to, reinterpret_cast<const void*>(from), static_cast<size_t>(bytes),
                      cudaMemcpyDeviceToHost, session->stream),
      "downloading"));
  return session->check(cudaStreamSynchronize(session->stream), "downloading");
}

class StreamLauncher final : public Launcher {
 public:
  explicit StreamLauncher(cudaStream_t stream) : stream_(stream) {}

  void run(Kernel kernel, uint blocks_x, uint blocks_y, uint threads, const Call& call) override {
    if (error_ != cudaSuccess) return;
    Call copy = call;
    void* arguments[] = {&copy};
    error_ = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks_x, blocks_y),
                              dim3(threads), arguments, 0, stream_);
  }
  cudaError_t error() const { return error_; }

 private:
  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

DoorStatus enqueue(DoorSession* session, const DoorCall* calls, size_t count) {
  SHOAL_DOOR_TRY(
      session->check(cudaMemsetAsync(session->status, 0xFF, 4, session->stream), "starting"));
  StreamLauncher launcher(session->stream);
  for (size_t i = 0; i < count; ++i) {
    const KernelEntry* entry = kernel_entry(calls[i].kernel);
    if (entry == nullptr) {
      session->why = "there is no such kernel";
      return DoorStatus::kLost;
    }
    entry->enqueue(launcher, make_call(calls[i], static_cast<uint32_t>(i), session->status,
                                       session->scratch, kScratchBytes));
    if (launcher.error() != cudaSuccess) return session->check(launcher.error(), entry->op);
  }
  return session->check(cudaMemcpyAsync(session->pinned_status, session->status, 4,
                                        cudaMemcpyDeviceToHost, session->stream),
                        "reading the status");
}

// The calls as a graph under `slot`, which is not run yet.
DoorStatus keep(DoorSession* session, const DoorCall* calls, size_t count, uint32_t slot) {
  if (session->graphs[slot]) {
    cudaGraphExecDestroy(session->graphs[slot]);
    session->graphs[slot] = nullptr;
  }
  cudaGraph_t graph = nullptr;
  SHOAL_DOOR_TRY(session->check(
      cudaStreamBeginCapture(session->stream, cudaStreamCaptureModeThreadLocal), "recording"));
  const DoorStatus queued = enqueue(session, calls, count);
  const cudaError_t ended = cudaStreamEndCapture(session->stream, &graph);
  if (queued == DoorStatus::kOk && ended == cudaSuccess) {
    const cudaError_t made = cudaGraphInstantiate(&session->graphs[slot], graph, 0);
    cudaGraphDestroy(graph);
    return session->check(made, "making a graph");
  }
  if (graph) cudaGraphDestroy(graph);
  SHOAL_DOOR_TRY(queued);
  return session->check(ended, "recording");
}

DoorStatus run(DoorSession* session, const DoorCall* calls, size_t count, DoorGraph graph,
               uint32_t slot, uint32_t* reported) {
  SHOAL_DOOR_TRY(session->check(cudaSetDevice(session->card), "starting"));
  slot %= kDoorGraphs;
  if (graph == DoorGraph::kKeep) SHOAL_DOOR_TRY(keep(session, calls, count, slot));
  if (graph == DoorGraph::kNone) {
    SHOAL_DOOR_TRY(enqueue(session, calls, count));
  } else {
    SHOAL_DOOR_TRY(session->check(cudaGraphLaunch(session->graphs[slot], session->stream),
                                  "starting a graph"));
  }
  SHOAL_DOOR_TRY(session->check(cudaStreamSynchronize(session->stream), "running"));
  *reported = *session->pinned_status;
  return DoorStatus::kOk;
}

const Door kDoor = {kDoorVersion, cards,    describe, find_kernel, open, close, why,
                    memory,       allocate, release,  write,       read, run};

}  // namespace
}  // namespace shoal::compute::cuda

extern "C" __attribute__((visibility("default"))) const shoal::compute::cuda::Door*
shoal_cuda_door() {
  return &shoal::compute::cuda::kDoor;
}
