#pragma once
// Threads that share out the pieces of one job. They block while there is none and never spin, so
// that a busy machine loses nothing to us.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace shoal::compute {

// Called by one thread, which does its share of every job.
class ThreadPool {
 public:
  // `threads` counts the caller; 0 means one for each core.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(piece) for 0 .. pieces-1, in any order on any thread, and returns when all are done.
  void run(int64_t pieces, const std::function<void(int64_t)>& task);

 private:
  struct Job;

  void work();

  std::vector<std::thread> workers_;
  std::mutex mutex_;  // Guards what follows: the workers and the caller meet only here.
  std::condition_variable wake_;
  std::condition_variable idle_;
  Job* job_ = nullptr;   // Null when there is nothing to join.
  uint64_t number_ = 0;  // Of the job, so that a worker joins each once.
  int joined_ = 0;       // Workers that hold job_.
  bool stop_ = false;
};

}  // namespace shoal::compute
