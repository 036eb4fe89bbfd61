// Goal: every piece of every job is done exactly once, whatever the threads do. Method: many small
// jobs, as decoding makes them, with counts for each piece. Worth running under the thread
// sanitizer.

#include <QTest>

#include <atomic>

#include "compute/backends/cpu/thread_pool.h"

using namespace shoal::compute;

class ThreadPoolTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_piece_is_done_once_data();
  void every_piece_is_done_once();
  void what_the_pieces_wrote_is_seen_by_the_caller();
};

void ThreadPoolTest::every_piece_is_done_once_data() {
  QTest::addColumn<int>("threads");
  for (const int threads : {0, 1, 2, 3, 8}) QTest::addRow("%d threads", threads) << threads;
}

void ThreadPoolTest::every_piece_is_done_once() {
  QFETCH(int, threads);
  ThreadPool pool(threads);
  QVERIFY(threads == 0 ? pool.threads() >= 1 : pool.threads() == threads);
  for (int job = 0; job < 2000; ++job) {
    const int pieces = job % 23;
    std::vector<std::atomic<int>> done(static_cast<size_t>(pieces));
    pool.run(pieces, [&](int64_t piece) { ++done[static_cast<size_t>(piece)]; });
    for (const auto& count : done) QCOMPARE(count.load(), 1);
  }
}

void ThreadPoolTest::what_the_pieces_wrote_is_seen_by_the_caller() {
  ThreadPool pool(4);
  std::vector<int64_t> values(1000, 1);
  for (int job = 0; job < 500; ++job) {
    pool.run(10, [&](int64_t piece) {
      for (int64_t i = piece * 100; i < piece * 100 + 100; ++i)
        values[static_cast<size_t>(i)] += piece;
    });
  }
  for (size_t i = 0; i < values.size(); ++i) QCOMPARE(values[i], int64_t(1 + 500 * (i / 100)));
}

QTEST_GUILESS_MAIN(ThreadPoolTest)
#include "thread_pool_test.moc"
