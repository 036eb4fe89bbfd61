// Goal: the whole client, from a lease to a stage that steps: shards are fetched once, go on after
// a loss and are fetched anew when damaged; a stage ends with its worker, its silence or its owner,
// and says so. Method: a fake coordinator over real TLS, real processes of fake_worker, a real
// cache on disk.

#include <QTest>
#include <csignal>
#include <fstream>

#include "tests/client/agent_world.h"

using namespace shoal;
using namespace shoal::client;

namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

class AgentTest : public QObject {
  Q_OBJECT

 public:
  ~AgentTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private:
  kj::AsyncIoContext io_ = kj::setupAsyncIo();

 private Q_SLOTS:
  void initTestCase() { ignore_broken_pipes(); }

  void reports_a_device_once_it_is_proved_and_measured() {
    World world(io_);
    world.start();
    world.wait_ready();
    const auto& device = world.coordinator.reports.back()[0];
    QCOMPARE(device.id, std::string("fake"));
    QCOMPARE(device.key_bytes, size_t(32));
    QVERIFY(device.exact);
    QCOMPARE(device.decode, 42.0);
    world.stop();
    QCOMPARE(world.coordinator.leaves, 1);
    // Remembered for the next start.
    QVERIFY(ClientState::load(world.dir / "client")
                .value()
                .measurement({"fake", "fake", "cpu", "a fake"}) != nullptr);
  }

  void who_gave_up_waiting_takes_nobodys_place() {
    World world(io_);
    world.start();
    world.wait_ready();
    for (int i = 0; i < 300; ++i) {
      const kj::Promise<void> gave_up = world.agent->changed_after(world.agent->revision());
    }
    kj::Promise<void> waits = world.agent->changed_after(world.agent->revision());
    QVERIFY(!waits.poll(io_.waitScope));
    // But of those who do wait there is a most.
    std::vector<kj::Promise<void>> others;
    const uint64_t now = world.agent->revision();
    while (others.size() < 255) others.push_back(world.agent->changed_after(now));
    QCOMPARE(world.failure(world.agent->changed_after(now)).getType(),
             kj::Exception::Type::OVERLOADED);
    world.stop();
  }

  void a_device_that_is_not_exact_is_failed() {
    World world(io_, "inexact");
    world.start();
    world.coordinator.wait_until([&] {
      return !world.coordinator.reports.empty() && !world.coordinator.reports.back().empty() &&
             world.coordinator.reports.back()[0].state == rpc::DeviceReport::State::FAILED;
    });
    QVERIFY(has(world.coordinator.reports.back()[0].reason, "add sample 1"));
    world.stop();
  }

  void opens_a_stage_that_steps_and_is_counted() {
    World world(io_);
    const std::vector<Digest> shards = {world.add_shard(3'000'000, 1), world.add_shard(70, 2)};
    world.start();
    world.wait_ready();
    {
      rpc::Stage::Client stage = world.open(shards);
      const auto answer = world.step(stage).wait(io_.waitScope);
      QCOMPARE(answer.getOutput().getHidden().size(), size_t(16));
      QCOMPARE(stage.shapeRequest().send().wait(io_.waitScope).getWidth(), 4u);
      world.wait_for_agent([](rpc::Snapshot::Reader snapshot) {
        const auto device = snapshot.getDevices()[0];
        return device.getStages() == 1 && device.getSteps() == 1 && device.getRows() == 1;
      });
    }
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getDevices()[0].getStages() == 0; });
    QCOMPARE(world.coordinator.bytes_read, uint64_t(3'000'070));
    (void)world.open(shards);  // From disk.
    QCOMPARE(world.coordinator.bytes_read, uint64_t(3'000'070));
    world.stop();
  }

  void two_leases_share_one_fetch() {
    World world(io_);
    const std::vector<Digest> shards = {world.add_shard(5'000'000, 1)};
    world.start();
    world.wait_ready();
    auto one = world.open_request(shards).send();
    auto other = world.open_request(shards).send();
    (void)one.wait(io_.waitScope);
    (void)other.wait(io_.waitScope);
    QCOMPARE(world.coordinator.bytes_read, uint64_t(5'000'000));
    world.stop();
  }

  void a_fetch_goes_on_where_a_loss_stopped_it() {
    World world(io_);
    const std::vector<Digest> shards = {world.add_shard(10 << 20, 3)};
    world.coordinator.reads_until_drop = 6;
    world.start();
    world.wait_ready();
    QVERIFY(world
                .failure(kj::Promise<capnp::Response<rpc::Host::OpenStageResults>>(
                    world.open_request(shards).send()))
                .getType() == kj::Exception::Type::DISCONNECTED);
    world.stop();
    QVERIFY(std::filesystem::exists(world.dir / ("shards/" + shards[0].hex() + ".part")));

    world.coordinator.reads_until_drop = UINT64_MAX;
    world.coordinator.reports.clear();
    world.coordinator.first_offset = UINT64_MAX;
    world.start();  // Another run.
    world.wait_ready();
    (void)world.open(shards);
    QCOMPARE(world.coordinator.first_offset, uint64_t(6 << 20));
    QCOMPARE(world.coordinator.bytes_read, uint64_t(10 << 20));
    world.stop();
  }

  void damage_on_disk_and_on_the_way_is_fetched_anew() {
    World world(io_);
    const std::vector<Digest> shards = {world.add_shard(1 << 20, 4)};
    world.coordinator.wrong_reads = 1;  // On the way, once.
    world.start();
    world.wait_ready();
    (void)world.open(shards);
    QCOMPARE(world.coordinator.reads, uint64_t(2));
    {
      std::fstream file(world.dir / ("shards/" + shards[0].hex()), std::ios::in | std::ios::out);
      file.seekp(5);
      file.put('\0');
      file.put('\1');
    }
    (void)world.open(shards);
    QCOMPARE(world.coordinator.reads, uint64_t(3));

    world.coordinator.wrong_reads = 100;  // Always: then it is said.
    const std::vector<Digest> other = {world.add_shard(1000, 5)};
    const Error error =
        rpc::error_of(world.failure(kj::Promise<capnp::Response<rpc::Host::OpenStageResults>>(
            world.open_request(other).send())));
    QCOMPARE(error.code, ErrorCode::kCorrupt);
    QVERIFY2(has(error.message, other[0].hex().c_str()), error.message.c_str());
    world.stop();
  }

  void leases_that_make_no_sense_are_refused() {
    World world(io_, "good", Bytes{1 << 20});
    const Digest shard = world.add_shard(1000, 6);
    world.start();
    world.wait_ready();
    const auto refused = [&](auto change, ErrorCode code, const char* part) {
      auto request = world.open_request({shard});
      change(request.getLease());
      const Error error = rpc::error_of(
          world.failure(kj::Promise<capnp::Response<rpc::Host::OpenStageResults>>(request.send())));
      QVERIFY2(error.code == code, error.message.c_str());
      QVERIFY2(has(error.message, part), error.message.c_str());
    };
    using Lease = rpc::StageLease::Builder;
    refused([](Lease lease) { lease.setDeviceId("cuda:0"); }, ErrorCode::kNotFound, "cuda:0");
    refused([](Lease lease) { lease.setDeviceId(std::string(limits::kNameBytesMax + 1, 'x')); },
            ErrorCode::kInvalid, "lease.deviceId");
    refused([](Lease lease) { lease.getSpec().initShards(0); }, ErrorCode::kInvalid, "shards");
    refused([](Lease lease) { lease.getSpec().getShards()[0].initDigest(3); }, ErrorCode::kInvalid,
            "shard.digest");
    refused(
        [](Lease lease) {
          lease.getSpec().getShards()[0].setSealedBytes(limits::kShardBytesMax + 1);
        },
        ErrorCode::kInvalid, "shard.sealedBytes");
    refused(
        [](Lease lease) { lease.getSpec().getShards()[0].initSealedKey(limits::kKeyBytesMax + 1); },
        ErrorCode::kInvalid, "shard.sealedKey");
    refused([](Lease lease) { lease.getSpec().getShards()[0].setSealedBytes(2 << 20); },
            ErrorCode::kNoSpace, "shard cache is full");
    refused([](Lease lease) { lease.getSpec().getShards()[0].initDigest(32); },
            ErrorCode::kNotFound, "no such shard");
    (void)world.open({shard});  // And the right one still opens.
    world.stop();
  }

  void a_stage_ends_with_its_worker() {
    World world(io_);
    const Digest shard = world.add_shard(1000, 7);
    world.start();
    world.wait_ready();
    rpc::Stage::Client stage = world.open({shard});
    uint32_t pid = 0;
    world.wait_for_agent([&pid](rpc::Snapshot::Reader snapshot) {
      pid = snapshot.getDevices()[0].getWorkerPid();
      return true;
    });
    world.coordinator.reports.clear();
    kill(static_cast<pid_t>(pid), SIGKILL);
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getDevices()[0].getRestarts() == 1; });
    QVERIFY(world.failure(kj::Promise<capnp::Response<rpc::Stage::StepResults>>(world.step(stage)))
                .getType() == kj::Exception::Type::DISCONNECTED);
    world.wait_ready();  // The coordinator is told of the next one, with its key.
    rpc::Stage::Client again = world.open({shard});
    (void)world.step(again).wait(io_.waitScope);
    world.stop();
  }

  void a_silent_lease_gives_the_device_back() {
    World world(io_);
    const Digest shard = world.add_shard(1000, 8);
    world.start();
    world.wait_ready();
    rpc::Stage::Client stage =
        world.open({shard}, /*silence_ms=*/1);  // Raised to the least, a second.
    world.wait_for_agent(
        [](rpc::Snapshot::Reader snapshot) { return snapshot.getDevices()[0].getStages() == 0; });
    const kj::Exception lost =
        world.failure(kj::Promise<capnp::Response<rpc::Stage::StepResults>>(world.step(stage)));
    QVERIFY(lost.getType() == kj::Exception::Type::DISCONNECTED);
    QVERIFY(has(lost.getDescription().cStr(), "lease is over"));
    world.stop();
  }

  void a_standby_has_its_shards_on_disk() {
    World world(io_);
    const Digest shard = world.add_shard(2'000'000, 9);
    world.start();
    world.wait_ready();
    auto request = KJ_ASSERT_NONNULL(world.coordinator.host).fetchShardsRequest();
    auto list = request.initShards(1);
    list[0].setDigest(rpc::kj_bytes(shard.bytes));
    list[0].setSealedBytes(2'000'000);
    request.send().ignoreResult().wait(io_.waitScope);
    QVERIFY(world.cache->proved(shard));
    world.stop();
  }

  void attaches_and_detaches_while_it_runs() {
    World world(io_);
    FakeCoordinator second(io_);
    second.invite = "welcome";
    second.listen();
    world.start();
    world.wait_ready();
    const std::string url = rpc::format_attach_url(second.url());
    QCOMPARE(world.agent->attach(url, {}).promise().wait(io_.waitScope), 1u);
    second.wait_until([&] { return !second.reports.empty(); });
    QCOMPARE(world.state->attachments().size(), size_t(1));
    const int left_before = second.leaves;
    QCOMPARE(world.agent->detach(url).promise().wait(io_.waitScope), 1);
    QCOMPARE(second.leaves, left_before + 1);
    QVERIFY(world.state->attachments().empty());
    world.stop();
  }
};

QTEST_GUILESS_MAIN(AgentTest)
#include "agent_test.moc"
