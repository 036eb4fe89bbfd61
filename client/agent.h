#pragma once
// The client as a whole: its devices, its coordinators, its owner's rules and choices, and what all
// of it looks like from outside. Holds the parts, introduces them, and acts on what they decide.
//
// Belongs to the KJ loop's thread.

#include <kj/async-io.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/secrets.h"
#include "client/client_state.h"
#include "client/coordinator_link.h"
#include "client/device_finder.h"
#include "client/host_server.h"
#include "client/lent_device.h"
#include "client/live_settings.h"
#include "client/log_ring.h"
#include "client/model_cache.h"
#include "client/overall.h"
#include "client/records/records.h"
#include "client/sensor_source.h"
#include "client/shard_fetcher.h"
#include "client/unit_runner.h"
#include "client/verdicts.h"
#include "client/work_list.h"
#include "client/worker_process.h"
#include "schema/agent.capnp.h"

namespace shoal::client {

// What an agent is made of. All of it outlives the agent.
struct AgentParts {
  Loop loop;
  const Clock& clock;
  Random& random;
  const SigningKey& identity;
  ClientState& state;
  LiveSettings& settings;
  ModelCache& cache;
  SensorSource& sensors;
  Records& records;
  LogRing& log;
};

struct AgentOptions {
  std::string worker_program;
  std::vector<std::string> worker_arguments;  // Before its own; for tests.
  Mode start_mode = Mode::kByRules;           // Of what the owner never chose a mode for.
  std::string state_folder;                   // To be shown.
  std::filesystem::path cache_folder;
  std::filesystem::path units_folder;      // Where units that were begun are kept.
  std::vector<std::string> private_words;  // The owner's name, his home: see bundle.h.
  // Looks at the rules by itself; false: only when asked, for tests.
  bool looks = true;
};

class Agent final : private LentDevice::Needs,
                    private DeviceFinder::Needs,
                    private CoordinatorLink::Needs,
                    private HostServer::Needs,
                    private UnitRunner::Needs {
 public:
  Agent(AgentParts parts, AgentOptions options);  // Starts at once.
  ~Agent() noexcept(false);
  KJ_DISALLOW_COPY(Agent);

  const AgentParts& parts() const { return parts_; }

  // Grows with every change that a snapshot shows; by mere figures once a second at most.
  uint64_t revision() const { return revision_; }
  kj::Promise<void> changed_after(uint64_t revision);
  void write_snapshot(rpc::Snapshot::Builder snapshot);

  // What the owner orders. Durable when it returns, and acts at once.
  Result<void> set_mode(Resource resource, Mode mode, Millis for_ms);
  Result<void> resume(Resource resource);       // Ends a pause, or a mode for a time.
  ModeChoice mode_of(Resource resource) const;  // As it holds now.
  Result<void> set_leave_by(std::optional<Millis> at);
  Result<void> change_settings(const std::vector<SettingChange>& changes);
  Result<void> set_device_lent(const std::string& device_id, bool lent);
  Result<void> set_consent(const std::string& url, const JobClass& job_class, bool allowed);

  // Waits until the device has no stage, then measures it again, whatever the owner's rules say.
  // But a pause, a sleep, the hard limits on heat and memory, and an owner who was away and comes
  // back fail it as unavailable.
  rpc::Task<Measurement> measure(std::string device_id);
  rpc::Task<CoordinatorCard> preview(std::string url);
  // Contacts the coordinator, enrols, stays attached; which of the snapshot's connections it is.
  // What is denied is stored before the coordinator hears of any device.
  rpc::Task<uint32_t> attach(std::string url, std::vector<JobClass> denied);
  rpc::Task<int> detach(std::string url);

  // Names of people, machines and folders that a bug report must not hold.
  std::vector<std::string> private_words() const;
  // What the records need to check receipts against.
  std::map<std::string, HostStanding> standings() const;  // By pin.
  std::string coordinator_name(const std::string& pin) const override;

  // Looks at rules, sensors and devices now. By itself it does so each second while something is
  // at work, else each five and at moments that the rules name; and soon after anything changes.
  void judge();

  // Called after every change of a setting.
  void on_settings_changed(std::function<void()> act) { settings_changed_ = std::move(act); }
  // How the door for other machines is, to be shown. A problem: why it is closed although the
  // settings want it open.
  void remote_door_is(bool listens, std::string problem);
  bool remote_listens() const { return remote_listens_; }

  void request_stop();
  kj::Promise<void> stop_requested();
  // Leaves every coordinator, then stops every worker. Takes two seconds at most.
  rpc::Task<void> shut_down();

 private:
  // LentDevice::Needs
  WorkerOptions worker_options(const DeviceFacts& facts) override;
  const Measurement* measurement_of(const DeviceFacts& facts) override;
  void measured(const DeviceFacts& facts, const Measurement& measurement) override;
  void device_changed(LentDevice& device) override;
  void device_given_back(LentDevice& device, Millis stop) override;

  // DeviceFinder::Needs
  kj::Promise<std::vector<DeviceFacts>> list_devices() override;
  void devices_found(std::vector<DeviceFacts> devices) override;
  void devices_not_found() override { changed(); }
  bool device_missing() const override;
  std::string device_nodes() const override { return system_device_nodes(); }

  // CoordinatorLink::Needs
  const SigningKey& identity() const override { return parts_.identity; }
  rpc::Host::Client make_host(CoordinatorLink& link, kj::Own<SessionSlot> slot) override;
  void write_report(rpc::HostSession::ReportParams::Builder report) override;
  void link_changed(CoordinatorLink& link) override;
  void standing_changed(CoordinatorLink& link) override;
  std::vector<JobClass> denied(const CoordinatorLink& link) override;
  Result<void> receipt_key_shown(const CoordinatorLink& link, const SigningPublicKey& key) override;
  std::optional<uint64_t> receipts_wanted(const CoordinatorLink& link) override;
  Result<void> receipts_came(const CoordinatorLink& link,
                             const std::vector<Receipt>& receipts) override;
  std::optional<DayWanted> day_wanted(const CoordinatorLink& link) override;
  Result<void> day_came(const CoordinatorLink& link, const LedgerDay& day,
                        const std::vector<ReceiptProof>& proofs, bool more) override;

  // HostServer::Needs
  Result<rpc::Worker::Client> worker_of(const std::string& device_id) override;
  Result<void> consents(const std::string& pin, const JobClass& job_class) override;
  Result<void> may_fetch() override;
  WorkList& work_list() override { return work_; }
  void work_changed() override;
  void step_began(const std::string& device_id) override;
  void step_ended(const std::string& device_id) override;
  void step_ran(const StageWork& work, const StepCost& cost) override;
  kj::Promise<void> may_send(Bytes bytes) override;
  PathDoor* path_door() override { return &paths_; }

  // UnitRunner::Needs
  std::vector<UnitRunner::Line> lines() override;
  bool attached(const std::string& pin) override { return find_link(pin) != nullptr; }
  kj::Promise<void> devices_reported(const std::string& pin) override;
  ByteVector worker_key(const std::string& device_id) override;
  std::optional<Millis> available(const std::string& device_id) override;
  bool may_use_network() override;
  Millis work_ahead() override;
  Millis checkpoint_each() override;
  void bytes_moved(Bytes received, Bytes sent) override;

  // What runs by itself.
  rpc::Task<void> keep_judging();
  void judge_soon() { judge_wanted_.give(); }
  bool at_work() const;
  Millis next_look();  // How long until the clock alone may change something.
  void notice_gap();   // This process, or the whole computer, was stopped for a while.
  void govern_and_count();
  rpc::Task<void> go_to_sleep();

  // What judge() is made of (agent_judge.cpp).
  void judge_resources(Millis now);
  void act_on(LentDevice& device);
  void allow_units(LentDevice& device);
  void look_at_freeing();
  // What must not go on even for a measurement that the owner asked for; none: it may.
  std::optional<Message> forbids_measuring(const LentDevice& device) const;
  bool owner_is_away(Resource resource) const;  // Or the owner does not mind.
  Verdict shown_verdict(LentDevice& device) const;
  OverallInput overall_input();
  void tell_coordinators_if_other();

  void forget_ended_modes(Millis now);
  void time_mode(int resource);  // From what is stored to the clock that nobody can set.
  void settings_act();
  void choose_lent();
  std::vector<std::string> words_without_device() const;
  std::string selectors() const;  // Of the devices that are here.
  void end_denied_work();
  void note_refused(const std::string& pin, const JobClass& job_class);
  bool is_allowed(const std::string& pin, const JobClass& job_class) const;
  const GpuReading* gpu_of(const LentDevice& device) const;  // Null: no sensor knows it.
  std::optional<Millis> available_for(const LentDevice& device) const;
  Bytes memory_used(const LentDevice& device) const;

  LentDevice* find(const std::string& device_id) const;           // Null when there is none.
  CoordinatorLink* find_link(const std::string& pin) const;       // Likewise.
  const Attachment* attachment_of(const std::string& pin) const;  // Likewise.
  uint64_t host_id_of(const CoordinatorLink& link) const;
  void write_device(LentDevice& device, rpc::DeviceReport::Builder report);
  void write_connection(CoordinatorLink& link, rpc::Snapshot::Connection::Builder to);
  void start_link(const rpc::AttachUrl& url);
  void changed();
  void figures_changed() { figures_changed_ = true; }
  void remember_last_work();

  AgentParts parts_;
  AgentOptions options_;
  Millis started_at_;
  std::function<void()> settings_changed_;
  bool remote_listens_ = false;
  std::string remote_problem_;

  uint64_t revision_ = 1;
  bool figures_changed_ = false;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> watchers_;
  kj::Own<kj::PromiseFulfiller<void>> stop_fulfiller_;
  kj::ForkedPromise<void> stop_promise_;
  bool shutting_down_ = false;

  ShardFetcher fetcher_;
  RateLimit upload_;
  PathDoor paths_;
  WorkList work_;
  Verdicts verdicts_;
  RuleTexts rule_texts_;
  StandingVerdict overall_;
  std::string told_;  // What the coordinators last heard, as a text to compare.
  std::map<std::string, Millis> last_work_;  // Wall time, by pin.
  bool last_work_stored_ = true;
  // Classes that a coordinator asked for and was denied though nobody judged them, by its pin.
  std::map<std::string, std::vector<JobClass>> refused_classes_;
  int64_t bytes_down_ = 0, bytes_up_ = 0;  // Of steps, not told to the records yet.

  // When modes for a time end, by the monotonic clock: one that somebody sets must neither end nor
  // stretch them while this process lives.
  Millis mode_ends_[kResourceCount];
  Millis judged_at_{0}, judged_wall_{0};  // The last tick's times, to find gaps.
  Millis governed_at_{0}, flushed_at_{0}, counted_at_{0};
  bool sleeping_ = false;
  kj::Promise<void> sleep_ = nullptr;

  // Devices whose process is gone and whose memory a sensor has yet to see free, by their id.
  struct Freeing {
    Bytes used_before, ours;
    Millis began{0};
    std::optional<Millis> stop;  // None: the process is still there.
  };
  std::map<std::string, Freeing> freeing_;
  kj::Promise<void> asks_gpu_ = nullptr;

  std::vector<std::string> unknown_words_;  // Of the settings: they name no device that was seen.
  std::vector<std::unique_ptr<LentDevice>> devices_;  // All that were ever seen, lent or not.
  // Of those that were ever lent since the start, by id. Never null.
  std::map<std::string, std::unique_ptr<UnitRunner>> unit_runners_;
  std::unique_ptr<DeviceFinder> finder_;
  Signal judge_wanted_;
  kj::Promise<void> judging_ = nullptr;
  // Last: what coordinators hold ends before what it uses.
  std::vector<kj::Own<CoordinatorLink>> links_;
};

// Contacts the coordinator once and enrols with the URL's invite. What an attachment is made of.
rpc::Task<Attachment> enrol(Loop loop, rpc::AttachUrl url, const SigningKey& identity);

// The URL up to its path.
std::string shown_url(const rpc::AttachUrl& url);

}  // namespace shoal::client
