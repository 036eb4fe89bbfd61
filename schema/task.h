#pragma once
// Coroutines over KJ promises: a function that returns Task<T> may co_await any kj::Promise. Cap'n
// Proto 0.9.2 has none of its own, and g++ 12 crashes on a coroutine that returns a kj::Promise
// itself (its destructor may throw), hence the wrapper. Dropping the promise destroys the frame at
// its suspension point, so destructors run and nothing continues.
//
// Never hold a reference parameter over a co_await without owning what it refers to. Take texts as
// std::string: g++ 12 also crashes on a coroutine with a kj::StringPtr parameter.

#include <kj/async.h>
#include <kj/debug.h>

#include <coroutine>
#include <exception>

namespace shoal::rpc {

template <class T>
class TaskPromise;

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = TaskPromise<T>;

  explicit Task(kj::Promise<T>&& promise) : promise_(kj::mv(promise)) {}
  Task(Task&& other) noexcept : promise_(kj::mv(other.promise_)) {}
  ~Task() noexcept {}

  operator kj::Promise<T>() && { return kj::mv(promise_); }
  kj::Promise<T> promise() && { return kj::mv(promise_); }

 private:
  kj::Promise<T> promise_;
};

namespace task_detail {

// Owns the frame on behalf of the promise that the caller holds.
template <class T>
class Adapter {
 public:
  Adapter(kj::PromiseFulfiller<T>& fulfiller, std::coroutine_handle<TaskPromise<T>> frame)
      : frame_(frame) {
    frame_.promise().fulfiller = &fulfiller;
  }
  ~Adapter() { frame_.destroy(); }
  KJ_DISALLOW_COPY(Adapter);

 private:
  std::coroutine_handle<TaskPromise<T>> frame_;
};

// A continuation may not destroy its own promise, so the last one is kept until the next begins.
struct Continuations {
  kj::Maybe<kj::Promise<void>> running;
  kj::Maybe<kj::Promise<void>> finished;
  void arm(kj::Promise<void> promise) {
    finished = kj::mv(running);
    running = kj::mv(promise);
  }
};

// What waiting needs whatever the value is.
class AwaiterBase {
 public:
  bool await_ready() const noexcept { return false; }

 protected:
  explicit AwaiterBase(Continuations& continuations) : continuations_(continuations) {}
  AwaiterBase(AwaiterBase&& other) noexcept : continuations_(other.continuations_) {}
  // A frame that is destroyed while it waits cancels what it waits for here, while the locals which
  // that may refer to are still there.
  ~AwaiterBase() noexcept {
    if (waits_) continuations_.running = nullptr;
  }

  void wait_for(kj::Promise<void> promise) {
    waits_ = true;
    continuations_.arm(kj::mv(promise));
  }
  void go_on(std::coroutine_handle<> frame) {
    waits_ = false;
    frame.resume();  // May end this awaiter.
  }
  void fail(std::coroutine_handle<> frame, kj::Exception&& exception) {
    exception_ = kj::mv(exception);
    go_on(frame);
  }
  void throw_failure() {
    KJ_IF_MAYBE (exception, exception_) {
      kj::throwFatalException(kj::mv(*exception));
    }
  }

 private:
  Continuations& continuations_;
  kj::Maybe<kj::Exception> exception_;
  bool waits_ = false;
};

template <class U>
class Awaiter : public AwaiterBase {
 public:
  Awaiter(kj::Promise<U>&& promise, Continuations& continuations)
      : AwaiterBase(continuations), promise_(kj::mv(promise)) {}
  Awaiter(Awaiter&& other) noexcept
      : AwaiterBase(kj::mv(other)), promise_(kj::mv(other.promise_)) {}
  ~Awaiter() noexcept {}

  void await_suspend(std::coroutine_handle<> frame) {
    wait_for(promise_
                 .then(
                     [this, frame](U&& value) {
                       value_ = kj::mv(value);
                       go_on(frame);
                     },
                     [this, frame](kj::Exception&& exception) { fail(frame, kj::mv(exception)); })
                 .eagerlyEvaluate(nullptr));
  }
  U await_resume() {
    throw_failure();
    return kj::mv(KJ_ASSERT_NONNULL(value_));
  }

 private:
  kj::Promise<U> promise_;
  kj::Maybe<U> value_;
};

template <>
class Awaiter<void> : public AwaiterBase {
 public:
  Awaiter(kj::Promise<void>&& promise, Continuations& continuations)
      : AwaiterBase(continuations), promise_(kj::mv(promise)) {}
  Awaiter(Awaiter&& other) noexcept
      : AwaiterBase(kj::mv(other)), promise_(kj::mv(other.promise_)) {}
  ~Awaiter() noexcept {}

  void await_suspend(std::coroutine_handle<> frame) {
    wait_for(promise_
                 .then([this, frame] { go_on(frame); },
                       [this, frame](kj::Exception&& exception) { fail(frame, kj::mv(exception)); })
                 .eagerlyEvaluate(nullptr));
  }
  void await_resume() { throw_failure(); }

 private:
  kj::Promise<void> promise_;
};

// What the frames of all result types share.
class PromiseBase {
 public:
  std::suspend_never initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }

  template <class U>
  Awaiter<U> await_transform(kj::Promise<U>&& promise) {
    return Awaiter<U>(kj::mv(promise), continuations_);
  }
  template <class U>
  Awaiter<U> await_transform(Task<U>&& task) {
    return Awaiter<U>(kj::mv(task).promise(), continuations_);
  }

 protected:
  static kj::Exception current_exception() {
    try {
      throw;
    } catch (kj::Exception& exception) {
      return kj::mv(exception);
    } catch (const std::exception& exception) {
      return KJ_EXCEPTION(FAILED, exception.what());
    }
  }

 private:
  Continuations continuations_;
};

}  // namespace task_detail

template <class T>
class TaskPromise : public task_detail::PromiseBase {
 public:
  Task<T> get_return_object() {
    return Task<T>(kj::newAdaptedPromise<T, task_detail::Adapter<T>>(
        std::coroutine_handle<TaskPromise>::from_promise(*this)));
  }
  template <class V>
  void return_value(V&& value) {
    fulfiller->fulfill(T(kj::fwd<V>(value)));
  }
  void unhandled_exception() { fulfiller->reject(current_exception()); }

  kj::PromiseFulfiller<T>* fulfiller = nullptr;
};

template <>
class TaskPromise<void> : public task_detail::PromiseBase {
 public:
  Task<void> get_return_object() {
    return Task<void>(kj::newAdaptedPromise<void, task_detail::Adapter<void>>(
        std::coroutine_handle<TaskPromise>::from_promise(*this)));
  }
  void return_void() { fulfiller->fulfill(); }
  void unhandled_exception() { fulfiller->reject(current_exception()); }

  kj::PromiseFulfiller<void>* fulfiller = nullptr;
};

}  // namespace shoal::rpc
