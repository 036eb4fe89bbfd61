#pragma once
// What the client's parts share of the KJ loop: the loop itself, a signal between two coroutines,
// children's pipes and ends, and when to wake. Decides nothing.
//
// Belongs to the KJ loop's thread.

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include "base/host.h"
#include "base/units.h"

namespace shoal::client {

// What a client needs of KJ.
struct Loop {
  kj::AsyncIoContext& io;
  kj::Timer& timer;
};

// Wakes one who waits. Given while nobody waits it is lost.
class Signal {
 public:
  void give() {
    if (fulfiller_.get() != nullptr) fulfiller_->fulfill();
  }
  // An earlier wait ends without its signal.
  kj::Promise<void> wait() {
    auto pair = kj::newPromiseAndFulfiller<void>();
    fulfiller_ = kj::mv(pair.fulfiller);
    return kj::mv(pair.promise);
  }
  void drop() { fulfiller_ = nullptr; }

 private:
  kj::Own<kj::PromiseFulfiller<void>> fulfiller_;
};

// How long to wait so that what happens about each `period` happens on whole seconds, as all else
// that does, and the processor rests in between. Never twice at once; a period of less than a
// second stays as it is. `now` is monotonic.
constexpr Millis until_whole(Millis now, Millis period) {
  if (period.count < 1'000) return period;
  const int64_t step = period.count / 1'000 * 1'000;
  return {((now.count + step / 4) / step + 1) * step - now.count};
}

// Readable when the child has ended and may be reaped.
kj::Own<kj::UnixEventPort::FdObserver> observe_exit(Loop loop, const ChildProcess& child);
kj::Own<kj::AsyncIoStream> stream_of(Loop loop, OwnedFd fd);

}  // namespace shoal::client
