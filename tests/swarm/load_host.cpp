#include "tests/swarm/load_host.h"

#include <fstream>
#include <sstream>

#include "base/check.h"
#include "base/clock.h"
#include "coordinator/data_folder.h"
#include "schema/require.h"

namespace shoal::test {
namespace {

constexpr kj::Duration kStartMax = 30 * kj::SECONDS;

// Asked for nothing but whether it is there.
class QuietHost final : public rpc::Host::Server {
  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }
};

}  // namespace

CoordinatorProcess::CoordinatorProcess(kj::AsyncIoContext& io, std::filesystem::path data,
                                       std::string settings)
    : io_(io), data_(std::move(data)) {
  const DataFolder made = rpc::require(make_data_folder(data_, ""));
  pin_ = made.pin;
  const SystemClock clock;
  invite_ = rpc::require(make_invite(*made.store, clock, Millis{86'400'000}, 1'000'000));
  if (!settings.empty()) {
    rpc::require(write_file_durably(data_ / "coordinator.toml", as_bytes(settings)));
  }
}

void CoordinatorProcess::spawn(const std::string& listen) {
  auto pipe = rpc::require(make_socket_pair());
  ChildOptions options;
  options.argv = {SHOAL_BIN_DIR "/shoal-coordinator", "--data", data_.string(), "--listen", listen};
  options.environment = {{"SHOAL_LOG", "error"}};
  options.stdout_fd = pipe.second.get();
  child_ = std::make_unique<ChildProcess>(rpc::require(ChildProcess::spawn(std::move(options))));
  pipe.second.reset();
  output_ = io_.lowLevelProvider->wrapSocketFd(pipe.first.release(),
                                               kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
}

void CoordinatorProcess::start(const std::string& listen) {
  spawn(listen);
  // Its first line says where it listens.
  std::string line;
  kj::Timer& timer = io_.provider->getTimer();
  while (line.find('\n') == std::string::npos) {
    char bytes[256];
    const size_t count = timer.timeoutAfter(kStartMax, output_->tryRead(bytes, 1, sizeof(bytes)))
                             .wait(io_.waitScope);
    if (count == 0) rpc::throw_error({ErrorCode::kUnavailable, "the coordinator does not start"});
    line.append(bytes, count);
  }
  line.resize(line.find('\n'));
  port_ = rpc::require(rpc::parse_attach_url(line)).port;
}

void CoordinatorProcess::kill() {
  admin_ = nullptr;
  output_ = nullptr;
  child_->kill();
  SHOAL_CHECK(child_->wait(Millis{30'000}).has_value());
  child_ = nullptr;
}

void CoordinatorProcess::stop() {
  admin_ = nullptr;
  output_ = nullptr;
  child_->terminate();
  SHOAL_CHECK(child_->wait(Millis{60'000}).has_value());
  child_ = nullptr;
}

rpc::Admin::Client CoordinatorProcess::admin() {
  if (admin_.get() == nullptr) {
    admin_ = rpc::dial_unix(io_.provider->getNetwork(), io_.provider->getTimer(),
                            (std::filesystem::absolute(data_) / "admin.sock").string())
                 .wait(io_.waitScope);
  }
  return admin_->bootstrap().castAs<rpc::Admin>();
}

rpc::AttachUrl CoordinatorProcess::url() const { return {"127.0.0.1", port_, pin_, invite_}; }

Bytes CoordinatorProcess::memory(const std::string& field) const {
  std::ifstream status("/proc/" + std::to_string(pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return Bytes{std::stoll(line.substr(field.size())) * 1024};
  }
  return Bytes{0};
}

double CoordinatorProcess::cpu_seconds() const {
  std::ifstream stat("/proc/" + std::to_string(pid()) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  std::string word;
  double ticks = 0;  // Fields 14 and 15 of the line; the name was the second.
  for (int field = 3; rest >> word && field <= 15; ++field) {
    if (field >= 14) ticks += std::stod(word);
  }
  return ticks / 100;  // Of Linux, on every machine that we know.
}

rpc::Task<void> LoadHost::connect(rpc::AttachUrl url, bool reports) {
  drop();
  rpc::Host::Client self = kj::heap<QuietHost>();
  kj::Promise<client::LoggedIn> logging_in =
      client::log_in(io_.provider->getNetwork(), io_.provider->getTimer(), std::move(url),
                     identity_, {name_, "test", "1"}, kj::mv(self));
  line_ = std::make_unique<client::LoggedIn>(co_await kj::mv(logging_in));
  id_ = line_->host_id;
  if (!reports) co_return;
  auto request = line_->session.reportRequest();
  auto device = request.initDevices(1)[0];
  auto info = device.initInfo();
  info.setId("cpu");
  info.setSelector("cpu");
  info.setPlane("cpu");
  info.setName("none");
  info.setMemoryBytes(uint64_t{1} << 30);
  device.setWorkerKey(rpc::kj_bytes(worker_.public_key().bytes));
  device.initSelfTest().setExact(true);
  auto benchmark = device.initBenchmark();
  benchmark.setWeightBytesPerSecond(1e9);
  benchmark.setFlopsPerSecond(1e9);
  benchmark.setMeasuredAtMs(1);
  device.setState(rpc::DeviceReport::State::READY);
  co_await request.send();
  desk_ = line_->session.unitsRequest().send().getDesk();
}

void LoadHost::drop() {
  desk_ = nullptr;
  line_ = nullptr;
}

rpc::Task<std::vector<LoadHost::Got>> LoadHost::lease(uint32_t count_max) {
  auto request = KJ_ASSERT_NONNULL(desk_).leaseRequest();
  request.setDeviceId("cpu");
  request.setSeconds(86'400);
  request.setCountMax(count_max);
  auto response = co_await request.send();
  std::vector<Got> all;
  for (const auto unit : response.getUnits()) {
    Got got{unit.getId(), unit.getLeaseId(), {}};
    for (const auto item : unit.getItems()) got.tokens_max.push_back(item.getTokensMax());
    all.push_back(std::move(got));
  }
  co_return all;
}

rpc::Task<bool> LoadHost::submit(Got got) {
  auto request = KJ_ASSERT_NONNULL(desk_).submitRequest();
  request.setLeaseId(got.lease);
  auto items = request.initOutput().initItems(static_cast<uint>(got.tokens_max.size()));
  for (uint i = 0; i < items.size(); ++i) {
    auto tokens = items[i].initTokens(got.tokens_max[i]);
    for (uint k = 0; k < tokens.size(); ++k) tokens.set(k, 40);
  }
  auto response = co_await request.send();
  const auto outcome = response.getOutcome();
  co_return outcome == rpc::UnitDesk::Outcome::ACCEPTED ||
      outcome == rpc::UnitDesk::Outcome::REPEATED;
}

rpc::Task<void> LoadHost::ping() { co_await line_->session.pingRequest().send(); }

}  // namespace shoal::test
