#pragma once
// What the client's parts share of the KJ loop: the loop itself, a signal between two coroutines,
// children's pipes and ends. Decides nothing.
//
// Belongs to the KJ loop's thread.

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include "base/host.h"
#include "base/units.h"
#include "client/whole_seconds.h"

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

// Readable when the child has ended and may be reaped.
kj::Own<kj::UnixEventPort::FdObserver> observe_exit(Loop loop, const ChildProcess& child);
kj::Own<kj::AsyncIoStream> stream_of(Loop loop, OwnedFd fd);

}  // namespace shoal::client
