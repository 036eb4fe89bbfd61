#include "client/agent.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "client/device_wire.h"
#include "schema/limits.h"

namespace shoal::client {
namespace {

constexpr kj::Duration kMeasureMax = 120 * kj::SECONDS;

// While a host only enrols it runs nothing.
class NoHost final : public rpc::Host::Server {};

bool same_coordinator(const rpc::AttachUrl& a, const rpc::AttachUrl& b) {
  return a.host == b.host && a.port == b.port && a.pin == b.pin;
}

const char* state_name(CoordinatorLink::State state) {
  switch (state) {
    case CoordinatorLink::State::kConnecting: return "connecting";
    case CoordinatorLink::State::kConnected: return "connected";
    case CoordinatorLink::State::kWaiting: return "waiting";
    case CoordinatorLink::State::kRefused: return "refused";
  }
  SHOAL_UNREACHABLE();
}

std::string shown_url(const rpc::AttachUrl& url) {
  return url_without_query(rpc::format_attach_url(url));
}

}  // namespace

rpc::Task<Attachment> enrol(Loop loop, rpc::AttachUrl url, const SigningKey& identity) {
  kj::Promise<LoggedIn> asked = log_in(loop.io.provider->getNetwork(), loop.timer, url, identity,
                                       own_host_card(), kj::heap<NoHost>());
  LoggedIn logged_in = co_await kj::mv(asked);
  auto request = logged_in.session.leaveRequest();
  request.setReason("enrolled");
  try {
    kj::Promise<void> left = request.send().ignoreResult();
    co_await loop.timer.timeoutAfter(2 * kj::SECONDS, kj::mv(left));
  } catch (const kj::Exception&) {
    // The enrolment stands, whatever became of the goodbye.
  }
  url.invite.clear();
  co_return Attachment{rpc::format_attach_url(url), logged_in.coordinator_name, logged_in.host_id};
}

rpc::Task<Measurement> measure_worker(kj::Timer& timer, rpc::Worker::Client client) {
  Measurement measurement;
  kj::Promise<capnp::Response<rpc::Worker::SelfTestResults>> tested =
      client.selfTestRequest().send();
  const auto self_test = co_await timer.timeoutAfter(kMeasureMax, kj::mv(tested));
  measurement.self_test = read_self_test(self_test.getReport());
  kj::Promise<capnp::Response<rpc::Worker::BenchmarkResults>> timed =
      client.benchmarkRequest().send();
  const auto benchmark = co_await timer.timeoutAfter(kMeasureMax, kj::mv(timed));
  measurement.benchmark = read_benchmark(benchmark.getReport());
  co_return measurement;
}

Agent::Agent(Loop loop, const Clock& clock, Random& random, const SigningKey& identity,
             ClientState& state, ModelCache& cache, AgentOptions options)
    : loop_(loop),
      clock_(clock),
      random_(random),
      identity_(identity),
      state_(state),
      cache_(cache),
      fetcher_(cache, loop.timer),
      options_(std::move(options)),
      stop_promise_(nullptr) {
  auto stop = kj::newPromiseAndFulfiller<void>();
  stop_fulfiller_ = kj::mv(stop.fulfiller);
  stop_promise_ = stop.promise.fork();

  for (const DeviceFacts& facts : options_.devices) {
    auto lent = std::make_unique<Lent>();
    lent->facts = facts;
    WorkerOptions worker;
    worker.argv = {options_.worker_program};
    worker.argv.insert(worker.argv.end(), options_.worker_arguments.begin(),
                       options_.worker_arguments.end());
    worker.argv.insert(worker.argv.end(),
                       {"--device", facts.id, "--threads", std::to_string(options_.threads)});
    if (options_.worker_memory_max.count > 0) {
      worker.argv.insert(worker.argv.end(),
                         {"--memory-max", std::to_string(options_.worker_memory_max.count)});
    }
    worker.hang_max = options_.worker_hang_max.count * kj::MILLISECONDS;
    lent->worker = kj::heap<WorkerProcess>(
        loop_, clock_, random_, static_cast<WorkerProcess::Needs&>(*this), std::move(worker));
    lent_.push_back(std::move(lent));
  }

  std::vector<std::string> urls;
  for (const Attachment& attachment : state_.attachments()) urls.push_back(attachment.url);
  urls.insert(urls.end(), options_.urls.begin(), options_.urls.end());
  for (const std::string& text : urls) {
    const Result<rpc::AttachUrl> url = rpc::parse_attach_url(text);
    if (url.ok()) {
      start_link(url.value());
    } else {
      log_error("agent", "bad_url", {{"url", url_without_query(text)}, {"cause", url.error()}});
    }
  }
}

Agent::~Agent() noexcept(false) = default;

void Agent::start_link(const rpc::AttachUrl& url) {
  for (const kj::Own<CoordinatorLink>& link : links_) {
    if (same_coordinator(link->url(), url)) return;
  }
  CoordinatorLink::Needs& needs = *this;
  links_.push_back(kj::heap<CoordinatorLink>(loop_.io.provider->getNetwork(), loop_.timer, clock_,
                                             random_, needs, url));
}

void Agent::changed() {
  ++revision_;
  for (auto& watcher : std::exchange(watchers_, {})) watcher->fulfill();
}

kj::Promise<void> Agent::changed_after(uint64_t revision) {
  if (revision != revision_) return kj::READY_NOW;
  auto pair = kj::newPromiseAndFulfiller<void>();
  watchers_.push_back(kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

Agent::Lent* Agent::find(const std::string& device_id) {
  for (const auto& lent : lent_) {
    if (lent->facts.id == device_id) return lent.get();
  }
  return nullptr;
}

Agent::Lent& Agent::lent_of(const WorkerProcess& worker) {
  for (const auto& lent : lent_) {
    if (lent->worker.get() == &worker) return *lent;
  }
  SHOAL_UNREACHABLE();
}

void Agent::worker_changed(WorkerProcess&) {
  changed();
  for (kj::Own<CoordinatorLink>& link : links_) link->devices_changed();
}

void Agent::link_changed(CoordinatorLink&) { changed(); }

kj::Promise<void> Agent::prepare(WorkerProcess& worker, rpc::Worker::Client client,
                                 DeviceFacts facts) {
  Lent& lent = lent_of(worker);
  if (facts.id != lent.facts.id) {
    rpc::throw_error(
        {ErrorCode::kUnavailable, "its worker opened device " + facts.id + " instead"});
  }
  lent.facts = facts;  // The driver may have been updated since the list was made.
  return prepare_device(facts.id, kj::mv(client));
}

rpc::Task<void> Agent::prepare_device(std::string device_id, rpc::Worker::Client client) {
  Lent& lent = *find(device_id);
  if (const Measurement* known = state_.measurement(lent.facts)) {
    lent.measurement = *known;
    co_return;
  }
  kj::Promise<Measurement> measuring = measure_worker(loop_.timer, kj::mv(client));
  const Measurement measured = co_await kj::mv(measuring);
  lent.measurement = measured;
  if (const Result<void> saved = state_.remember(lent.facts, measured); !saved.ok()) {
    log_warning("agent", "measurement_not_saved", {{"cause", saved.error()}});
  }
}

rpc::Task<Measurement> Agent::measure(std::string device_id) {
  Lent* const lent = find(device_id);
  if (lent == nullptr)
    rpc::throw_error({ErrorCode::kNotFound, "device " + device_id + " is not lent"});
  while (lent->use.stages > 0) co_await changed_after(revision_);
  kj::Maybe<rpc::Worker::Client> client = lent->worker->client();
  if (client == nullptr) rpc::throw_error({ErrorCode::kUnavailable, lent->worker->reason()});
  rpc::Worker::Client worker = KJ_ASSERT_NONNULL(client);
  kj::Promise<Measurement> measuring = measure_worker(loop_.timer, kj::mv(worker));
  const Measurement measured = co_await kj::mv(measuring);
  lent->measurement = measured;
  if (const Result<void> saved = state_.remember(lent->facts, measured); !saved.ok()) {
    rpc::throw_error(saved.error());
  }
  worker_changed(*lent->worker);
  co_return measured;
}

rpc::Host::Client Agent::make_host(kj::Own<SessionSlot> slot) {
  HostServer::Needs& needs = *this;
  return kj::heap<HostServer>(loop_.timer, cache_, fetcher_, needs, kj::mv(slot));
}

Result<rpc::Worker::Client> Agent::worker_of(const std::string& device_id) {
  Lent* const lent = find(device_id);
  if (lent == nullptr) return Error{ErrorCode::kNotFound, "device " + device_id + " is not lent"};
  KJ_IF_MAYBE (client, lent->worker->client()) {
    return *client;
  }
  return Error{ErrorCode::kUnavailable,
               "device " + device_id + " is not ready: " + lent->worker->reason()};
}

DeviceUse& Agent::use_of(const std::string& device_id) {
  Lent* const lent = find(device_id);
  SHOAL_CHECK(lent != nullptr);
  return lent->use;
}

void Agent::write_device(Lent& lent, rpc::DeviceReport::Builder report) {
  write_facts(lent.facts, report.initInfo());
  report.setWorkerKey(rpc::kj_bytes(lent.worker->public_key()));
  std::string reason = lent.worker->reason();
  auto state = rpc::DeviceReport::State::STARTING;
  switch (lent.worker->state()) {
    case WorkerProcess::State::kStarting: break;
    case WorkerProcess::State::kFailed: state = rpc::DeviceReport::State::FAILED; break;
    case WorkerProcess::State::kReady:
      state = rpc::DeviceReport::State::READY;
      if (lent.measurement && !lent.measurement->self_test.exact) {
        state = rpc::DeviceReport::State::FAILED;
        reason = "its results are not exact: " + lent.measurement->self_test.first_failure;
      }
      break;
  }
  if (lent.measurement) {
    write_self_test(lent.measurement->self_test, report.initSelfTest());
    write_benchmark(lent.measurement->benchmark, report.initBenchmark());
  }
  report.setState(state);
  report.setReason(std::string(cut_utf8(reason, limits::kReasonBytesMax)));
}

void Agent::write_report(rpc::HostSession::ReportParams::Builder report) {
  auto devices = report.initDevices(static_cast<uint32_t>(lent_.size()));
  for (uint32_t i = 0; i < devices.size(); ++i) write_device(*lent_[i], devices[i]);
}

void Agent::write_snapshot(rpc::Snapshot::Builder snapshot) {
  snapshot.setRevision(revision_);
  snapshot.setVersion(SHOAL_VERSION);
  snapshot.setHostName(host_name());
  snapshot.setPid(static_cast<uint32_t>(own_pid()));
  auto connections = snapshot.initConnections(static_cast<uint32_t>(links_.size()));
  for (uint32_t i = 0; i < connections.size(); ++i) {
    const CoordinatorLink& link = *links_[i];
    connections[i].setUrl(shown_url(link.url()));
    connections[i].setName(link.coordinator_name());
    connections[i].setState(state_name(link.state()));
    connections[i].setReason(link.reason());
    connections[i].setRetryInMs(static_cast<uint32_t>(link.retry_in().count));
    connections[i].setHostId(link.host_id());
    connections[i].setTrusted(link.trusted());
  }
  auto devices = snapshot.initDevices(static_cast<uint32_t>(lent_.size()));
  for (uint32_t i = 0; i < devices.size(); ++i) {
    Lent& lent = *lent_[i];
    write_device(lent, devices[i].initReport());
    devices[i].setWorkerPid(static_cast<uint32_t>(lent.worker->pid()));
    devices[i].setRestarts(lent.worker->restarts());
    devices[i].setStages(lent.use.stages);
    devices[i].setSteps(lent.use.steps);
    devices[i].setRows(lent.use.rows);
  }
  snapshot.setCacheBytes(static_cast<uint64_t>(cache_.used().count));
  snapshot.setCacheBytesMax(static_cast<uint64_t>(cache_.limits().bytes_max.count));
  const std::vector<ShardFetcher::Transfer> running = fetcher_.transfers();
  auto transfers = snapshot.initTransfers(static_cast<uint32_t>(running.size()));
  for (uint32_t i = 0; i < transfers.size(); ++i) {
    transfers[i].setDigest(running[i].digest.hex());
    transfers[i].setBytesDone(running[i].done);
    transfers[i].setBytesTotal(running[i].total);
  }
}

rpc::Task<uint32_t> Agent::attach(std::string text) {
  const Result<rpc::AttachUrl> parsed = rpc::parse_attach_url(text);
  if (!parsed.ok()) rpc::throw_error(parsed.error());
  kj::Promise<Attachment> enrolling = enrol(loop_, parsed.value(), identity_);
  Attachment attachment = co_await kj::mv(enrolling);
  const Result<rpc::AttachUrl> url = rpc::parse_attach_url(attachment.url);
  if (const Result<void> saved = state_.attach(std::move(attachment)); !saved.ok()) {
    rpc::throw_error(saved.error());
  }
  start_link(url.value());
  changed();
  for (uint32_t i = 0; i < links_.size(); ++i) {
    if (same_coordinator(links_[i]->url(), url.value())) co_return i;
  }
  SHOAL_UNREACHABLE();
}

rpc::Task<int> Agent::detach(std::string url) {
  const Result<int> count = state_.detach(url);
  if (!count.ok()) rpc::throw_error(count.error());
  std::vector<kj::Own<CoordinatorLink>> leaving;
  for (auto it = links_.begin(); it != links_.end();) {
    if (url.empty() || shown_url((*it)->url()) == url_without_query(url)) {
      leaving.push_back(kj::mv(*it));
      it = links_.erase(it);
    } else {
      ++it;
    }
  }
  changed();
  for (kj::Own<CoordinatorLink>& link : leaving) {
    kj::Promise<void> left = link->leave("the owner detached this host");
    co_await kj::mv(left);
  }
  co_return std::max(count.value(), static_cast<int>(leaving.size()));
}

void Agent::request_stop() { stop_fulfiller_->fulfill(); }

kj::Promise<void> Agent::stop_requested() { return stop_promise_.addBranch(); }

rpc::Task<void> Agent::shut_down() {
  auto leaving = kj::heapArrayBuilder<kj::Promise<void>>(links_.size());
  for (kj::Own<CoordinatorLink>& link : links_) leaving.add(link->leave("the client stops"));
  kj::Promise<void> left = kj::joinPromises(leaving.finish());
  co_await kj::mv(left);
  links_.clear();
  auto stopping = kj::heapArrayBuilder<kj::Promise<void>>(lent_.size());
  for (auto& lent : lent_) stopping.add(lent->worker->stop());
  kj::Promise<void> stopped = kj::joinPromises(stopping.finish());
  co_await kj::mv(stopped);
}

}  // namespace shoal::client
