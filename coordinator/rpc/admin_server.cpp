#include "coordinator/rpc/admin_server.h"

#include <algorithm>
#include <map>

#include "coordinator/data_folder.h"
#include "coordinator/jobs/job_service.h"
#include "coordinator/rpc/accounts.h"
#include "coordinator/rpc/generation.h"
#include "coordinator/rpc/job_desk.h"
#include "coordinator/rpc/model_upload.h"
#include "coordinator/session/session.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr int64_t kInviteLifetimeMaxMs = int64_t{366} * 24 * 3600 * 1000;

rpc::HostInfo::Standing wire_standing(Standing standing) {
  switch (standing) {
    case Standing::kVolunteer: return rpc::HostInfo::Standing::VOLUNTEER;
    case Standing::kTrusted: return rpc::HostInfo::Standing::TRUSTED;
    case Standing::kBanned: return rpc::HostInfo::Standing::BANNED;
  }
  SHOAL_UNREACHABLE();
}

Standing standing_of(rpc::HostInfo::Standing standing) {
  switch (standing) {
    case rpc::HostInfo::Standing::VOLUNTEER: return Standing::kVolunteer;
    case rpc::HostInfo::Standing::TRUSTED: return Standing::kTrusted;
    case rpc::HostInfo::Standing::BANNED: return Standing::kBanned;
  }
  rpc::throw_error({ErrorCode::kInvalid, "unknown standing"});
}

HostId host_id_of(uint64_t id) {
  return HostId{static_cast<int64_t>(std::min<uint64_t>(id, INT64_MAX))};
}

rpc::Privacy privacy_of_session(const SessionRow& row) {
  return privacy_of({"", "", row.privacy == "anchored", row.privacy == "group"});
}

void write_device(rpc::HostInfo::Device::Builder out, const DeviceRow& row, std::string_view state,
                  const std::string& reason) {
  auto info = out.initInfo();
  info.setId(row.name_on_host);
  info.setSelector(row.selector);
  info.setPlane(row.plane);
  info.setName(row.name);
  info.setDriver(row.driver);
  info.setMemoryBytes(static_cast<uint64_t>(row.memory.count));
  info.setSoftware(row.software);
  out.setExact(row.exact);
  out.setDecodeRowsPerSecond(row.decode_rows_per_second);
  out.setState(std::string(state));
  out.setReason(reason);
}

JobId job_id(uint64_t id) { return JobId{static_cast<int64_t>(std::min<uint64_t>(id, INT64_MAX))}; }

void write_events(capnp::List<rpc::Event>::Builder out, const std::vector<EventRow>& rows) {
  for (uint i = 0; i < out.size(); ++i) {
    out[i].setId(static_cast<uint64_t>(rows[i].id));
    out[i].setAtMs(rows[i].at.count);
    out[i].setKind(rows[i].kind);
    out[i].setHostId(static_cast<uint64_t>(rows[i].host.value));
    out[i].setSessionId(static_cast<uint64_t>(rows[i].session.value));
    out[i].setText(rows[i].text);
  }
}

class AdminServer final : public rpc::Admin::Server {
 public:
  explicit AdminServer(Parts& parts) : parts_(parts) {}

  kj::Promise<void> status(StatusContext context) override {
    const int64_t known = rpc::require(parts_.hosts.count());
    const int64_t models = rpc::require(parts_.models.count());
    auto status = context.getResults().initStatus();
    status.setName(parts_.folder.settings.name);
    status.setVersion(SHOAL_VERSION);
    status.setUptimeMs(
        static_cast<uint64_t>((parts_.clock.now_monotonic() - parts_.started).count));
    status.setAddress(parts_.folder.settings.listen_host + ":" + std::to_string(parts_.port));
    status.setPin(parts_.folder.pin);
    status.setHostsKnown(static_cast<uint32_t>(known));
    status.setHostsConnected(static_cast<uint32_t>(parts_.pool.hosts().size()));
    status.setDevicesReady(
        static_cast<uint32_t>(parts_.pool.offers(parts_.timer.now(), {}).size()));
    status.setModels(static_cast<uint32_t>(models));
    const int64_t tokens = rpc::require(parts_.sessions.tokens_ever());
    int64_t relayed = parts_.relayed_bytes;
    for (const Session* session : parts_.live) relayed += session->relayed_bytes();
    status.setSessionsLive(static_cast<uint32_t>(parts_.live.size()));
    status.setTokensGenerated(static_cast<uint64_t>(tokens));
    status.setRelayedBytes(static_cast<uint64_t>(relayed));
    status.setCreditRate(parts_.folder.settings.credit_rate);
    status.setCreditUnit(parts_.folder.settings.credit_unit);
    return kj::READY_NOW;
  }

  kj::Promise<void> publishModel(PublishModelContext context) override {
    const auto params = context.getParams();
    const std::string manifest =
        rpc::text_of(params.getManifest(), limits::kManifestBytesMax, "manifest");
    context.getResults().setUpload(
        begin_model_upload(parts_, manifest, params.getKeys(),
                           rpc::text_of(params.getPurpose(), limits::kReasonBytesMax, "purpose"),
                           membership_name(params.getGroup(), "group", /*may_be_empty=*/true)));
    return kj::READY_NOW;
  }

  kj::Promise<void> listModels(ListModelsContext context) override {
    const std::vector<ModelRow> rows = rpc::require(parts_.models.list(limits::kListRowsMax));
    auto models = context.getResults().initModels(static_cast<uint>(rows.size()));
    for (uint i = 0; i < models.size(); ++i) {
      write_model_info(models[i], rows[i], model_facts(parts_, rows[i]));
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> removeModel(RemoveModelContext context) override {
    rpc::require(remove_model(
        parts_, rpc::text_of(context.getParams().getName(), limits::kNameBytesMax, "name")));
    return kj::READY_NOW;
  }

  kj::Promise<void> generate(GenerateContext context) override {
    return run_generation(parts_, context);
  }

  kj::Promise<void> listSessions(ListSessionsContext context) override {
    const uint32_t ended_max = std::min(context.getParams().getEndedMax(), limits::kListRowsMax);
    const std::vector<SessionRow> rows = rpc::require(parts_.sessions.list(ended_max));
    auto sessions = context.getResults().initSessions(static_cast<uint>(rows.size()));
    for (uint i = 0; i < sessions.size(); ++i) write_session(sessions[i], rows[i]);
    return kj::READY_NOW;
  }

  kj::Promise<void> showSession(ShowSessionContext context) override {
    const SessionId id{
        static_cast<int64_t>(std::min<uint64_t>(context.getParams().getSessionId(), INT64_MAX))};
    const std::optional<SessionRow> row = rpc::require(parts_.sessions.find(id));
    if (!row) {
      rpc::throw_error({ErrorCode::kNotFound, "there is no session " + std::to_string(id.value) +
                                                  "; shoalctl session list shows the last ones"});
    }
    const auto live = std::ranges::find_if(
        parts_.live, [&](const Session* session) { return session->row().id == id; });
    auto results = context.getResults();
    write_session(results.initSession(), *row);
    write_figures(results.initFigures(), live != parts_.live.end()
                                             ? (*live)->figures()
                                             : rpc::require(parts_.sessions.figures(id)));
    return kj::READY_NOW;
  }

  kj::Promise<void> planSession(PlanSessionContext context) override {
    plan_generation(parts_, context);
    return kj::READY_NOW;
  }

  kj::Promise<void> listHosts(ListHostsContext context) override {
    const std::vector<HostRow> known = rpc::require(parts_.hosts.list(limits::kListRowsMax));
    std::map<AccountId, std::string> accounts;
    for (AccountRow& account : rpc::require(parts_.accounts.list(limits::kListRowsMax))) {
      accounts[account.id] = std::move(account.name);
    }
    auto hosts = context.getResults().initHosts(static_cast<uint>(known.size()));
    for (uint i = 0; i < hosts.size(); ++i) {
      const HostRow& row = known[i];
      auto host = hosts[i];
      host.setId(static_cast<uint64_t>(row.id.value));
      host.setName(row.name);
      host.setSystem(row.system);
      host.setVersion(row.version);
      host.setStanding(wire_standing(row.standing));
      host.setLastSeenMs(row.last_seen.count);
      const Ledger::Standing standing = rpc::require(parts_.ledger.standing(row.id));
      host.setNewestReceipt(standing.newest_receipt);
      host.setCreditConfirmed(standing.confirmed);
      host.setCreditPending(standing.pending);
      host.setCreditRejected(standing.rejected);
      host.setAccount(accounts[row.account]);
      host.setGroup(row.group);
      const auto live = parts_.pool.hosts().find(row.id);
      host.setConnected(live != parts_.pool.hosts().end());
      if (live != parts_.pool.hosts().end()) {
        host.setLastSeenMs(parts_.clock.now_wall().count);
        const std::vector<PoolDevice>& devices = live->second->devices;
        auto out = host.initDevices(static_cast<uint>(devices.size()));
        for (uint d = 0; d < out.size(); ++d) {
          write_device(out[d], devices[d].row,
                       state_word(devices[d].state,
                                  live->second->taken_of(devices[d].row.name_on_host).stages),
                       devices[d].reason);
        }
        continue;
      }
      const std::vector<DeviceRow> devices = rpc::require(parts_.hosts.devices(row.id));
      auto out = host.initDevices(static_cast<uint>(devices.size()));
      for (uint d = 0; d < out.size(); ++d) {
        write_device(out[d], devices[d], "gone", "its host is not connected");
      }
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> setHostStanding(SetHostStandingContext context) override {
    const auto params = context.getParams();
    const HostId id{static_cast<int64_t>(params.getHostId())};
    const Standing standing = standing_of(params.getStanding());
    rpc::require(parts_.hosts.set_standing(id, standing));
    parts_.journal.note("host_standing", std::string(standing_name(standing)), id);
    if (standing == Standing::kBanned) {
      drop_hosts(parts_, {&id, 1});
    } else {
      const std::optional<HostRow> host = rpc::require(parts_.hosts.find(id));
      parts_.jobs->host_known(id, standing == Standing::kTrusted, host && is_banned(*host), {});
      parts_.pool.set_trusted(id, standing == Standing::kTrusted);
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> createInvite(CreateInviteContext context) override {
    const auto params = context.getParams();
    if (params.getLifetimeMs() == 0 || params.getLifetimeMs() > uint64_t{kInviteLifetimeMaxMs} ||
        params.getUsesMax() == 0) {
      rpc::throw_error(
          {ErrorCode::kInvalid, "an invite lives from 1 ms to 366 days, for at least one use"});
    }
    const Membership membership = membership_of(parts_, params.getAccount(), params.getGroup());
    const std::string invite = rpc::require(make_invite(
        *parts_.folder.store, parts_.clock, Millis{static_cast<int64_t>(params.getLifetimeMs())},
        params.getUsesMax(), membership));
    parts_.journal.note("invite_made",
                        "for " + std::to_string(params.getUsesMax()) + " uses within " +
                            std::to_string(params.getLifetimeMs() / 1000) + " s" +
                            (params.getAccount().size() == 0
                                 ? ""
                                 : std::string(", account ") + params.getAccount().cStr()) +
                            (membership.group.empty() ? "" : ", group " + membership.group));
    context.getResults().setUrl(attach_url_of(parts_, invite));
    return kj::READY_NOW;
  }

  kj::Promise<void> listEvents(ListEventsContext context) override {
    const auto params = context.getParams();
    const int64_t after = static_cast<int64_t>(std::min<uint64_t>(params.getAfterId(), INT64_MAX));
    const std::vector<EventRow> rows = rpc::require(parts_.sessions.events(
        after, std::min<uint32_t>(params.getCountMax(), limits::kListRowsMax)));
    write_events(context.getResults().initEvents(static_cast<uint>(rows.size())), rows);
    return kj::READY_NOW;
  }

  kj::Promise<void> submitJob(SubmitJobContext context) override {
    std::string spec =
        rpc::text_of(context.getParams().getSpec(), limits::kJobBytesMax, "job file");
    std::vector<std::string> inputs;
    auto upload = begin_job_upload(parts_, std::move(spec), inputs);
    auto results = context.getResults();
    results.setUpload(kj::mv(upload));
    auto out = results.initInputs(static_cast<uint>(inputs.size()));
    for (uint i = 0; i < out.size(); ++i) out.set(i, inputs[i]);
    return kj::READY_NOW;
  }

  kj::Promise<void> listJobs(ListJobsContext context) override {
    const std::vector<ShownJob> shown = rpc::require(parts_.jobs->list(
        std::min<uint32_t>(context.getParams().getEndedMax(), limits::kListRowsMax)));
    auto jobs = context.getResults().initJobs(static_cast<uint>(shown.size()));
    for (uint i = 0; i < jobs.size(); ++i) write_job_info(jobs[i], shown[i]);
    return kj::READY_NOW;
  }

  kj::Promise<void> showJob(ShowJobContext context) override {
    const JobId id = job_id(context.getParams().getJobId());
    auto results = context.getResults();
    write_job_info(results.initJob(), rpc::require(parts_.jobs->show(id)));
    const std::vector<EventRow> rows = rpc::require(parts_.jobs->events(id));
    write_events(results.initEvents(static_cast<uint>(rows.size())), rows);
    return kj::READY_NOW;
  }

  kj::Promise<void> changeJob(ChangeJobContext context) override {
    const auto params = context.getParams();
    const JobId id = job_id(params.getJobId());
    JobOrder order = JobOrder::kPause;
    switch (params.getChange()) {
      case rpc::Admin::JobChange::PAUSE: break;
      case rpc::Admin::JobChange::RESUME: order = JobOrder::kResume; break;
      case rpc::Admin::JobChange::CANCEL: order = JobOrder::kCancel; break;
      case rpc::Admin::JobChange::RETRY: order = JobOrder::kRetry; break;
      default: rpc::throw_error({ErrorCode::kInvalid, "unknown change of a job"});
    }
    return parts_.jobs->change_job(id, order).then([this, id, context]() mutable {
      write_job_info(context.getResults().initJob(), rpc::require(parts_.jobs->show(id)));
    });
  }

  kj::Promise<void> jobResults(JobResultsContext context) override {
    const auto params = context.getParams();
    if (!params.hasSink()) rpc::throw_error({ErrorCode::kInvalid, "sink is missing"});
    kj::Promise<TaskOutput> written = parts_.jobs->output(
        job_id(params.getJobId()), rpc::text_of(params.getTask(), limits::kNameBytesMax, "task"));
    rpc::ByteSink::Client sink = params.getSink();
    context.releaseParams();
    context.allowCancellation();
    return written.then([sink, context](TaskOutput&& output) mutable {
      auto results = context.getResults();
      if (output.digest) results.setDigest(output.digest->hex());
      results.setItems(static_cast<uint64_t>(output.items));
      return send_output(std::move(output.path), output.temporary, kj::mv(sink));
    });
  }

  kj::Promise<void> listReceipts(ListReceiptsContext context) override {
    const auto params = context.getParams();
    const HostId host = host_id_of(params.getHostId());
    if (!rpc::require(parts_.hosts.find(host))) {
      rpc::throw_error(
          {ErrorCode::kNotFound, "there is no host " + std::to_string(host.value) +
                                     "; shoalctl host list shows those that are known"});
    }
    const std::vector<Receipt> receipts = rpc::require(parts_.ledger.receipts(
        host, params.getAfterNumber(),
        std::min<uint32_t>(params.getCountMax(), limits::kReceiptsPerCallMax)));
    auto results = context.getResults();
    auto out = results.initReceipts(static_cast<uint>(receipts.size()));
    for (uint i = 0; i < out.size(); ++i) write_receipt(receipts[i], out[i]);
    results.setReceiptKey(rpc::kj_bytes(parts_.ledger.receipt_key().bytes));
    return kj::READY_NOW;
  }

  kj::Promise<void> reconcileLedger(ReconcileLedgerContext context) override {
    context.allowCancellation();
    auto check = kj::heap<LedgerCheck>(parts_.ledger_table, parts_.ledger.receipt_key());
    LedgerCheck& checking = *check;
    return check_on(checking)
        .then([&checking, context]() mutable {
          const LedgerCheck::Report& report = checking.report();
          auto out = context.getResults().initReport();
          out.setLeases(static_cast<uint64_t>(report.leases));
          out.setReceipts(static_cast<uint64_t>(report.receipts));
          out.setHosts(static_cast<uint32_t>(report.hosts));
          out.setPending(static_cast<uint64_t>(report.pending));
          out.setCreditConfirmed(credit_of(CreditParts{report.sums.confirmed}));
          out.setCreditPending(credit_of(CreditParts{report.sums.pending}));
          out.setCreditRejected(credit_of(CreditParts{report.sums.rejected}));
          auto problems = out.initProblems(static_cast<uint>(report.problems.size()));
          for (uint i = 0; i < problems.size(); ++i) problems.set(i, report.problems[i]);
          out.setProblemCount(static_cast<uint64_t>(report.problem_count));
          out.setDays(static_cast<uint64_t>(report.days));
        })
        .attach(kj::mv(check));
  }

  kj::Promise<void> createAccount(CreateAccountContext context) override {
    create_account(parts_, membership_name(context.getParams().getName(), "name"));
    return kj::READY_NOW;
  }

  kj::Promise<void> listAccounts(ListAccountsContext context) override {
    list_accounts(parts_, context.getResults());
    return kj::READY_NOW;
  }

  kj::Promise<void> setAccountBanned(SetAccountBannedContext context) override {
    const auto params = context.getParams();
    context.getResults().setHostsDropped(
        set_account_banned(parts_, membership_name(params.getName(), "name"), params.getBanned()));
    return kj::READY_NOW;
  }

  kj::Promise<void> createTeam(CreateTeamContext context) override {
    create_team(parts_, membership_name(context.getParams().getName(), "name"));
    return kj::READY_NOW;
  }

  kj::Promise<void> listTeams(ListTeamsContext context) override {
    list_teams(parts_, context.getResults());
    return kj::READY_NOW;
  }

  kj::Promise<void> joinTeam(JoinTeamContext context) override {
    const auto params = context.getParams();
    join_team(parts_, membership_name(params.getAccount(), "account"),
              membership_name(params.getTeam(), "team", /*may_be_empty=*/true));
    return kj::READY_NOW;
  }

  kj::Promise<void> setHostAccount(SetHostAccountContext context) override {
    const auto params = context.getParams();
    set_host_account(parts_, host_id_of(params.getHostId()),
                     membership_name(params.getAccount(), "account", /*may_be_empty=*/true));
    return kj::READY_NOW;
  }

  kj::Promise<void> setHostGroup(SetHostGroupContext context) override {
    const auto params = context.getParams();
    set_host_group(parts_, host_id_of(params.getHostId()),
                   membership_name(params.getGroup(), "group", /*may_be_empty=*/true));
    return kj::READY_NOW;
  }

  kj::Promise<void> listLedgerDays(ListLedgerDaysContext context) override {
    const auto params = context.getParams();
    const std::vector<LedgerDayRow> rows = rpc::require(parts_.ledger_table.days(
        params.getFromDay(), std::min<uint32_t>(params.getCountMax(), limits::kListRowsMax)));
    auto results = context.getResults();
    auto days = results.initDays(static_cast<uint>(rows.size()));
    for (uint i = 0; i < days.size(); ++i) write_ledger_day(ledger_day_from(rows[i]), days[i]);
    results.setReceiptKey(rpc::kj_bytes(parts_.ledger.receipt_key().bytes));
    return kj::READY_NOW;
  }

 private:
  // Between two pieces of a long check, all others have their turn: a timer lets them.
  kj::Promise<void> check_on(LedgerCheck& check) {
    if (!rpc::require(check.go_on())) return kj::READY_NOW;
    return parts_.timer.afterDelay(1 * kj::MILLISECONDS).then([this, &check] {
      return check_on(check);
    });
  }

  void write_session(rpc::SessionInfo::Builder out, const SessionRow& row) {
    const auto live = std::ranges::find_if(
        parts_.live, [&](const Session* session) { return session->row().id == row.id; });
    const bool lives = live != parts_.live.end();
    out.setId(static_cast<uint64_t>(row.id.value));
    out.setModel(row.model);
    out.setPrivacy(privacy_of_session(row));
    out.setGroup(row.group);
    out.setState(row.state);
    out.setReason(row.reason);
    out.setPromptTokens(static_cast<uint32_t>(row.prompt_tokens));
    out.setTokens(static_cast<uint32_t>(lives ? (*live)->tokens() : row.tokens));
    out.setStartedAtMs(row.started_at.count);
    out.setEndedAtMs(row.ended_at.count);
    out.setFailovers(static_cast<uint32_t>(row.failovers));
    std::vector<StageWho> stages;
    if (lives) {
      stages = (*live)->stages();
    } else {
      for (const SessionStageRow& stage : rpc::require(parts_.sessions.stages(row.id))) {
        if (stage.lost_at.count != 0) continue;
        const std::optional<HostRow> host = rpc::require(parts_.hosts.find(stage.host));
        stages.push_back({stage.host, host ? host->name : "",
                          host && host->standing == Standing::kTrusted, stage.device,
                          stage.device_name, stage.plane, stage.first_fragment,
                          stage.last_fragment});
      }
    }
    write_stages(out.initStages(static_cast<uint>(stages.size())), stages);
  }

  Parts& parts_;
};

}  // namespace

rpc::Admin::Client make_admin_server(Parts& parts) { return kj::heap<AdminServer>(parts); }

}  // namespace shoal
