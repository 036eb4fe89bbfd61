// Goal: rows go from one host's stage to the next one's only between those whom a coordinator
// introduced, and whatever a neighbour sends costs no more than one block of memory and one path.
// Method: the paths of two hosts in one process, real TLS on loopback.

#include <capnp/message.h>

#include <QtTest>
#include <limits>

#include "client/stage_paths.h"
#include "schema/direct.h"

using namespace shoal;
using namespace shoal::client;

namespace {

constexpr size_t kRowBytes = 16, kRowsMax = 4;

ByteVector rows_of(float value, size_t rows) {
  ByteWriter writer;
  for (size_t i = 0; i < rows * kRowBytes / sizeof(float); ++i) writer.f32(value);
  return writer.take();
}

}  // namespace

class PathsTest : public QObject {
  Q_OBJECT

 public:
  ~PathsTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  Loop loop_{io_, io_.provider->getTimer()};

  // A host: its door, and a stage.
  struct Side {
    PathsTest& test;
    PathDoor door;
    StagePaths paths;
    explicit Side(PathsTest& test, bool listens)
        : test(test), door(test.loop_), paths(door, kRowBytes, kRowsMax) {
      door.act_on(true, listens ? test.free_address() : "");
      while (listens && door.port() == 0)
        test.loop_.timer.afterDelay(1 * kj::MILLISECONDS).wait(test.io_.waitScope);
    }

    void expect(ByteSpan token, rpc::PathEnd::Side side) {
      capnp::MallocMessageBuilder message;
      auto end = message.initRoot<rpc::PathEnd>();
      end.setToken(rpc::kj_bytes(token));
      end.setSide(side);
      paths.expect(end);
    }
    // What went wrong, or nothing.
    std::string dial(ByteSpan token, rpc::PathEnd::Side side, uint16_t port,
                     const std::string& pin) {
      capnp::MallocMessageBuilder message;
      auto params = message.initRoot<rpc::DirectStage::DialParams>();
      params.initEnd().setToken(rpc::kj_bytes(token));
      params.getEnd().setSide(side);
      params.setAddress("127.0.0.1");
      params.setPort(port);
      params.setPin(pin);
      return test.failure_of([&] {
        rpc::Task<uint32_t> dialling = paths.dial(params);
        kj::Promise<uint32_t> dialled = kj::mv(dialling);
        dialled.wait(test.io_.waitScope);
      });
    }
    ByteVector take(uint32_t first, uint32_t rows) {
      return paths.take(first, rows).wait(test.io_.waitScope);
    }
  };

  std::string free_address() {
    auto address = io_.provider->getNetwork().parseAddress("127.0.0.1:0").wait(io_.waitScope);
    return "127.0.0.1:" + std::to_string(address->listen()->getPort());
  }
  template <class Act>
  std::string failure_of(Act act) {
    try {
      act();
    } catch (const kj::Exception& exception) {
      return rpc::error_of(exception).message;
    }
    return "";
  }
  const ByteVector token_ = ByteVector(limits::kPathTokenBytes, std::byte{7});
  static constexpr auto kIn = rpc::PathEnd::Side::INPUTS;
  static constexpr auto kOut = rpc::PathEnd::Side::OUTPUTS;

  // `from` passes on to `to`; one of them listens.
  void join(Side& from, Side& to) {
    if (to.door.port() != 0) {
      to.expect(token_, kIn);
      QCOMPARE(from.dial(token_, kOut, to.door.port(), to.door.pin()), std::string());
    } else {
      from.expect(token_, kOut);
      QCOMPARE(to.dial(token_, kIn, from.door.port(), from.door.pin()), std::string());
    }
  }

 private Q_SLOTS:
  void rows_arrive_whoever_dialled() {
    for (const bool to_listens : {false, true}) {
      Side from(*this, !to_listens), to(*this, to_listens);
      QVERIFY(!from.paths.may_pass_on(1).ok());  // There is no path yet.
      join(from, to);
      const ByteVector block = rows_of(1.5f, 3);
      QVERIFY(from.paths.may_pass_on(3).ok());
      QCOMPARE(from.paths.pass_on(5, block).value(), digest_of(block));
      QCOMPARE(to.take(5, 3), block);
      // A step may wait for its rows as well.
      kj::Promise<ByteVector> waits = to.paths.take(8, 1);
      QVERIFY(from.paths.pass_on(8, rows_of(2, 1)).ok());
      QCOMPARE(waits.wait(io_.waitScope), rows_of(2, 1));
    }
  }

  void what_was_passed_on_is_handed_out() {
    Side from(*this, false), to(*this, true);
    join(from, to);
    QVERIFY(from.paths.pass_on(5, rows_of(1, 2)).ok());
    QVERIFY(from.paths.pass_on(7, rows_of(2, 1)).ok());
    QCOMPARE(to_vector(from.paths.outputs(5, 2).value()), rows_of(1, 2));
    QCOMPARE(to_vector(from.paths.outputs(7, 1).value()), rows_of(2, 1));
    QVERIFY(from.paths.outputs(5, 3).ok());
    QVERIFY(!from.paths.outputs(4, 1).ok());
    QVERIFY(!from.paths.outputs(5, 4).ok());
    QVERIFY(!from.paths.outputs(9, 1).ok());
    // What is given again takes the place of what was; a gap is none.
    QVERIFY(!from.paths.pass_on(9, rows_of(1, 1)).ok());
    QVERIFY(!from.paths.pass_on(4, rows_of(1, 1)).ok());
    QVERIFY(!from.paths.pass_on(8, rows_of(1, kRowsMax + 1)).ok());
    QVERIFY(from.paths.pass_on(6, rows_of(3, 1)).ok());
    QCOMPARE(to_vector(from.paths.outputs(6, 1).value()), rows_of(3, 1));
    QVERIFY(!from.paths.outputs(7, 1).ok());
    QCOMPARE(from.door.kept_bytes(), int64_t(2 * kRowBytes));
    // All stages of a host share one bound.
    from.door.kept_bytes() = kKeptBytesMax - int64_t(kRowBytes);
    QVERIFY(from.paths.may_pass_on(1).ok());
    QVERIFY(!from.paths.may_pass_on(2).ok());
    from.door.kept_bytes() = int64_t(2 * kRowBytes);
    from.paths.end();
    QCOMPARE(from.door.kept_bytes(), int64_t{0});
    QVERIFY(!from.paths.pass_on(7, rows_of(1, 1)).ok());
  }

  void strangers_stay_out() {
    Side door(*this, true), stranger(*this, false);
    door.expect(token_, kIn);
    const std::string pin = door.door.pin();
    const uint16_t port = door.door.port();
    const ByteVector guess(limits::kPathTokenBytes, std::byte{8});
    QVERIFY(stranger.dial(guess, kOut, port, pin).find("nobody is expected") != std::string::npos);
    QVERIFY(stranger.dial(token_, kOut, port, std::string(43, 'A')).find("pin") !=
            std::string::npos);
    QVERIFY(stranger.dial(ByteVector(3), kOut, port, pin).find("token") != std::string::npos);
    // The right one comes once.
    QCOMPARE(stranger.dial(token_, kOut, port, pin), std::string());
    Side second(*this, false);
    QVERIFY(second.dial(token_, kOut, port, pin).find("nobody is expected") != std::string::npos);
    // Nor is anybody let in whom no stage waits for any more, or where the owner closed the door.
    door.expect(guess, kIn);
    door.paths.end();
    QVERIFY(second.dial(guess, kOut, port, pin).find("nobody is expected") != std::string::npos);
    door.door.act_on(true, "");
    QCOMPARE(door.door.port(), uint16_t{0});
    QVERIFY(second.dial(guess, kOut, port, pin).find("refused") != std::string::npos);
    second.door.act_on(false, "");
    QVERIFY(second.dial(guess, kOut, port, pin).find("does not dial") != std::string::npos);
    QVERIFY(failure_of([&] { second.expect(token_, kIn); }).find("nobody may dial") !=
            std::string::npos);
  }

  void a_neighbour_that_leaves_is_noticed() {
    Side to(*this, true);
    auto from = std::make_unique<Side>(*this, false);
    join(*from, to);
    kj::Promise<ByteVector> waits = to.paths.take(0, 1);
    from = nullptr;
    QVERIFY(failure_of([&] { waits.wait(io_.waitScope); }).find("gone") != std::string::npos);
    QVERIFY(!failure_of([&] { to.take(0, 1); }).empty());
  }

  void bad_blocks_end_the_path_data() {
    QTest::addColumn<int>("bytes");
    QTest::addColumn<float>("value");
    QTest::addColumn<QString>("why");
    const int most = int(kRowBytes * kRowsMax);
    QTest::newRow("the largest") << most << 1.0f << "";
    QTest::newRow("none") << 0 << 1.0f << "no block";
    QTest::newRow("part of a row") << int(kRowBytes + 4) << 1.0f << "no block";
    QTest::newRow("too many") << int(most + kRowBytes) << 1.0f << "no block";
    QTest::newRow("an infinity") << int(kRowBytes) << std::numeric_limits<float>::infinity()
                                 << "not finite";
    QTest::newRow("no number") << int(kRowBytes) << std::numeric_limits<float>::quiet_NaN()
                               << "not finite";
  }

  void bad_blocks_end_the_path() {
    QFETCH(int, bytes);
    QFETCH(float, value);
    QFETCH(QString, why);
    auto inlet = kj::refcounted<RowInlet>(kRowBytes, kRowsMax);
    ByteVector block = rows_of(value, kRowsMax + 2);
    block.resize(size_t(bytes));
    const std::string refused = failure_of([&] { inlet->put(3, block); });
    if (why.isEmpty()) {
      QCOMPARE(refused, std::string());
      QCOMPARE(inlet->take(3, kRowsMax).wait(io_.waitScope), block);
      return;
    }
    QVERIFY2(QString::fromStdString(refused).contains(why), refused.c_str());
    QVERIFY(!failure_of([&] { inlet->take(3, 1).wait(io_.waitScope); }).empty());
    QVERIFY(!failure_of([&] { inlet->put(3, rows_of(1, 1)); }).empty());
  }

  void blocks_come_in_order_and_few_wait() {
    auto inlet = kj::refcounted<RowInlet>(kRowBytes, kRowsMax);
    // Steps may wait for as many as they like.
    kj::Promise<ByteVector> first = inlet->take(0, 1), second = inlet->take(1, 2);
    inlet->put(0, rows_of(1, 1));
    inlet->put(1, rows_of(2, 2));
    QCOMPARE(first.wait(io_.waitScope), rows_of(1, 1));
    QCOMPARE(second.wait(io_.waitScope), rows_of(2, 2));
    for (uint32_t i = 0; i < RowInlet::kBlocksMax; ++i) inlet->put(3 + i, rows_of(3, 1));
    QVERIFY(failure_of([&] { inlet->put(5, rows_of(3, 1)); }).find("no step has asked") !=
            std::string::npos);
    // What came before that is good.
    for (uint32_t i = 0; i < RowInlet::kBlocksMax; ++i) {
      QCOMPARE(inlet->take(3 + i, 1).wait(io_.waitScope), rows_of(3, 1));
    }
    QVERIFY(!failure_of([&] { inlet->take(5, 1).wait(io_.waitScope); }).empty());

    for (const uint32_t at : {4u, 5u}) {
      auto other = kj::refcounted<RowInlet>(kRowBytes, kRowsMax);
      other->put(at, rows_of(1, at == 5 ? 2 : 1));
      QVERIFY(failure_of([&] { other->take(5, 1).wait(io_.waitScope); }).find("another block") !=
              std::string::npos);
    }
  }
};

QTEST_GUILESS_MAIN(PathsTest)
#include "paths_test.moc"
