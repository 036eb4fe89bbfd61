#pragma once
// Holds a message from the client that nobody changes again: a snapshot, or the answer to a call.
// Whoever keeps the pointer keeps every reader into it alive, on whichever thread.

#include <capnp/message.h>

#include <memory>

#include "schema/agent.capnp.h"

namespace shoal::ui {

template <class T>
class Kept {
 public:
  explicit Kept(typename T::Reader from) {
    message_.setRoot(from);
    reader_ = message_.getRoot<T>().asReader();
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  typename T::Reader reader() const { return reader_; }
  const typename T::Reader* operator->() const { return &reader_; }

 private:
  capnp::MallocMessageBuilder message_;
  typename T::Reader reader_;
};

using Snapshot = Kept<rpc::Snapshot>;
using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace shoal::ui
