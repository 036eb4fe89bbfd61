// Coroutines over kj promises: values, exceptions, cancellation, and long loops.

#include <kj/async-io.h>

#include <QTest>

#include <string>

#include "schema/task.h"

using shoal::rpc::Task;

namespace {

// Counts how many are alive, so that a test sees frames being destroyed.
struct Alive {
  explicit Alive(int& count) : count(count) { ++count; }
  ~Alive() { --count; }
  int& count;
};

Task<int> add_one_later(kj::Timer& timer, int value) {
  co_await timer.afterDelay(1 * kj::MICROSECONDS);
  co_return value + 1;
}

Task<int> count_to(kj::Timer& timer, int end) {
  int value = 0;
  while (value < end) value = co_await add_one_later(timer, value);
  co_return value;
}

Task<void> fail_with(std::string text) {
  co_await kj::Promise<void>(kj::READY_NOW);
  KJ_FAIL_REQUIRE(text.c_str());
}

Task<bool> catches() {
  bool caught = false;
  try {
    co_await fail_with("planted");
  } catch (const kj::Exception& exception) {
    caught = exception.getType() == kj::Exception::Type::FAILED;
  }
  // The frame goes on after a caught failure.
  co_await kj::Promise<void>(kj::READY_NOW);
  co_return caught;
}

Task<void> never_ends(int& alive) {
  const Alive here(alive);
  co_await kj::Promise<void>(kj::NEVER_DONE);
}

Task<void> waits_for(int& alive, kj::Promise<void> inner) {
  const Alive here(alive);
  co_await kj::mv(inner);
}

// Writes down what was still there when it was cancelled.
struct Witness {
  Witness(bool& there, bool& saw) : there(there), saw(saw) {}
  ~Witness() { saw = there; }
  bool& there;
  bool& saw;
};

Task<void> watches(bool& there, bool& saw) {
  const Witness witness(there, saw);
  co_await kj::Promise<void>(kj::NEVER_DONE);
}

// Lends a local to what it waits for.
Task<void> lends(bool& there, bool& saw) {
  struct Lent {
    explicit Lent(bool& there) : there(there) { there = true; }
    ~Lent() { there = false; }
    bool& there;
  } const lent(there);
  kj::Promise<void> watching = watches(there, saw);
  co_await kj::mv(watching);
}

Task<kj::Own<int>> moves() {
  auto owned = co_await kj::Promise<kj::Own<int>>(kj::heap<int>(42));
  co_return kj::mv(owned);
}

Task<int> spins_without_waiting(int times) {
  int sum = 0;
  for (int i = 0; i < times; ++i) sum += co_await kj::Promise<int>(1);
  co_return sum;
}

}  // namespace

class TaskTest : public QObject {
  Q_OBJECT

 public:
  ~TaskTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();

  template <class T>
  T wait(Task<T> task) {
    return kj::mv(task).promise().wait(io_.waitScope);
  }

 private Q_SLOTS:
  void values_come_back() {
    QCOMPARE(wait(count_to(io_.provider->getTimer(), 100)), 100);
    QCOMPARE(*wait(moves()), 42);
  }

  void exceptions_cross_frames() {
    QVERIFY(wait(catches()));
    bool thrown = false;
    try {
      wait(fail_with("planted"));
    } catch (const kj::Exception& exception) {
      thrown = QString(exception.getDescription().cStr()).contains("planted");
    }
    QVERIFY(thrown);
  }

  void dropping_a_task_destroys_its_frames() {
    int alive = 0;
    {
      kj::Promise<void> outer = waits_for(alive, never_ends(alive));
      QVERIFY(!outer.poll(io_.waitScope));
      QCOMPARE(alive, 2);
    }
    QCOMPARE(alive, 0);
  }

  // What is waited for may refer to locals of who waits: it goes before them.
  void dropping_a_task_cancels_what_it_waits_for_before_its_locals() {
    bool there = false, saw = false;
    {
      kj::Promise<void> outer = lends(there, saw);
      QVERIFY(!outer.poll(io_.waitScope));
      QVERIFY(there);
    }
    QVERIFY(!there);
    QVERIFY(saw);
  }

  void a_long_loop_needs_no_deep_stack() {
    QCOMPARE(wait(spins_without_waiting(300'000)), 300'000);
  }
};

QTEST_GUILESS_MAIN(TaskTest)
#include "task_test.moc"
