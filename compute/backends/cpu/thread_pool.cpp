#include "compute/backends/cpu/thread_pool.h"

#include <atomic>

#include "base/host.h"

namespace shoal::compute {

struct ThreadPool::Job {
  const std::function<void(int64_t)>& task;
  int64_t pieces;
  std::atomic<int64_t> next = 0;

  void take() {
    for (int64_t piece = next.fetch_add(1); piece < pieces; piece = next.fetch_add(1)) task(piece);
  }
};

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = cpu_count();
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t pieces, const std::function<void(int64_t)>& task) {
  Job job{task, pieces};
  if (workers_.empty() || pieces <= 1) {
    job.take();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    job_ = &job;
    ++number_;
  }
  wake_.notify_all();
  job.take();
  // Every piece is taken. Nobody may join any more; those who did finish theirs.
  std::unique_lock lock(mutex_);
  job_ = nullptr;
  idle_.wait(lock, [this] { return joined_ == 0; });
}

void ThreadPool::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || (job_ != nullptr && number_ != seen); });
    if (stop_) return;
    seen = number_;
    Job* job = job_;
    ++joined_;
    lock.unlock();
    job->take();
    lock.lock();
    if (--joined_ == 0) idle_.notify_one();
  }
}

}  // namespace shoal::compute
