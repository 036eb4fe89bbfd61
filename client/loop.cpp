#include "client/loop.h"

namespace shoal::client {

kj::Own<kj::UnixEventPort::FdObserver> observe_exit(Loop loop, const ChildProcess& child) {
  return kj::heap<kj::UnixEventPort::FdObserver>(loop.io.unixEventPort, child.pidfd(),
                                                 kj::UnixEventPort::FdObserver::OBSERVE_READ);
}

kj::Own<kj::AsyncIoStream> stream_of(Loop loop, OwnedFd fd) {
  return loop.io.lowLevelProvider->wrapSocketFd(
      fd.release(),
      kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
}

}  // namespace shoal::client
