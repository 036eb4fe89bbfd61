// attach, detach, consent: for whom this machine works, and on what.

#include "base/text.h"
#include "client/agent.h"
#include "client/commands/commands.h"
#include "client/commands/wire_json.h"
#include "client/commands/words.h"
#include "client/identity.h"
#include "schema/receipt.h"

namespace shoal::client {
namespace {

struct Attached {
  std::string url;  // Without pin and invite.
  std::string coordinator;
  uint64_t host_id = 0;
  bool running = false;
};

// What of the card's offers is of these models. An error: one is of no offer.
Result<std::vector<JobClass>> denied_of(const std::vector<JobClass>& offered,
                                        const std::vector<std::string>& models) {
  std::vector<JobClass> denied;
  for (const std::string& model : models) {
    const size_t before = denied.size();
    std::ranges::copy_if(offered, std::back_inserter(denied),
                         [&model](const JobClass& one) { return one.model == model; });
    if (denied.size() == before) {
      return Error{ErrorCode::kNotFound, "the coordinator offers no model '" + model + "'"};
    }
  }
  return denied;
}

struct AttachChoice {
  std::string url;
  std::vector<std::string> deny;  // Models.
  bool preview = false;
};

Result<void> attach_by_agent(AgentSession& session, const AttachChoice& choice,
                             Attached& attached) {
  std::vector<JobClass> offered;
  if (!choice.deny.empty()) {
    auto preview = session.agent.previewAttachRequest();
    preview.setUrl(choice.url);
    const auto card = session.ask_patiently(kj::mv(preview));
    for (const auto offer : card.getCard().getOffers()) {
      offered.push_back(read_job_class(offer.getJobClass()));
    }
  }
  SHOAL_TRY_ASSIGN(denied, denied_of(offered, choice.deny));
  auto request = session.agent.attachRequest();
  request.setUrl(choice.url);
  auto list = request.initDenied(static_cast<uint32_t>(denied.size()));
  for (uint32_t i = 0; i < list.size(); ++i) write_job_class(denied[i], list[i]);
  const auto answer = session.ask_patiently(kj::mv(request));
  const auto connection = answer.getConnection();
  attached = {connection.getUrl().cStr(), connection.getName().cStr(), connection.getHostId(),
              /*running=*/true};
  return {};
}

// Without a running client: the coordinator hears of a device only when one runs, and by then the
// records hold what is denied.
Result<Attachment> attach_alone(Loop loop, const rpc::AttachUrl& url, const SigningKey& identity,
                                const Workplace& place, const std::vector<std::string>& deny) {
  std::vector<JobClass> offered;
  if (!deny.empty()) {
    kj::Promise<CoordinatorCard> asked = preview(loop.io.provider->getNetwork(), loop.timer, url);
    const CoordinatorCard card = asked.wait(loop.io.waitScope);
    for (const CoordinatorCard::Offer& offer : card.offers) offered.push_back(offer.job_class);
  }
  SHOAL_TRY_ASSIGN(denied, denied_of(offered, deny));
  Attachment attachment = enrol(loop, url, identity).promise().wait(loop.io.waitScope);
  if (!denied.empty()) {
    const SystemClock clock;
    Records records(place.folders.state, clock);
    for (const JobClass& one : denied) SHOAL_TRY(records.set_consent(url.pin, one, false));
  }
  return attachment;
}

Result<void> attach(const CommandOptions& options, const AttachChoice& choice) {
  SHOAL_TRY_ASSIGN(url, rpc::parse_attach_url(choice.url));
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  Attached attached;
  const AgentBody by_agent = [&](AgentSession& session) {
    return attach_by_agent(session, choice, attached);
  };
  SHOAL_TRY_ASSIGN(lock, ask_or_lock(options, place, by_agent));
  if (lock) {
    SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
    SHOAL_TRY_ASSIGN(identity,
                     load_or_make_identity(place.identity(), !state.attachments().empty()));
    Result<Attachment> attachment = with_loop<Attachment>([&](Loop loop) -> Result<Attachment> {
      return attach_alone(loop, url, identity, place, choice.deny);
    });
    if (!attachment.ok()) return attachment.error();
    attached = {url_without_query(attachment.value().url), attachment.value().name,
                attachment.value().host_id, /*running=*/false};
    SHOAL_TRY(state.attach(std::move(attachment).value()));
  }
  if (options.json) {
    print_json(Json{{"attached", true},
                    {"url", attached.url},
                    {"coordinator", attached.coordinator},
                    {"host_id", attached.host_id},
                    {"running", attached.running}});
    return {};
  }
  print_text("Attached to " + printable(attached.coordinator) + " (" + printable(attached.url) +
             ")");
  if (!attached.running) print_text("Start lending with: shoal-client run");
  return {};
}

// What the coordinator would ask, before anything is joined.
Result<void> preview(const CommandOptions& options, const std::string& url) {
  if (const auto parsed = rpc::parse_attach_url(url); !parsed.ok()) return parsed.error();
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    auto request = session.agent.previewAttachRequest();
    request.setUrl(url);
    const auto answer = session.ask_patiently(kj::mv(request));
    const auto card = answer.getCard();
    if (options.json) {
      print_json(json_of(capnp::toDynamic(card)));
      return {};
    }
    std::string text = printable(card.getName().cStr()) + "\n";
    if (card.getOperator().size() > 0) {
      text += printable(card.getOperator().cStr(), /*keep_lines=*/true) + "\n";
    }
    Table table({{"model", "MODEL"},
                 {"privacy", "PRIVACY"},
                 {"kind", "KIND"},
                 {"size", "SIZE"},
                 {"credit", "CREDIT/1000 ROWS"},
                 {"purpose", "PURPOSE"}});
    for (const auto offer : card.getOffers()) {
      const auto job_class = offer.getJobClass();
      table.add({job_class.getModel().cStr(), word_of(job_class.getPrivacy()),
                 job_class.getKind().cStr(),
                 text_of(Bytes{static_cast<int64_t>(offer.getSealedBytes())}),
                 rounded(offer.getCreditPerRow() * 1000, 2), offer.getPurpose().cStr()});
    }
    print_text(text + (table.empty() ? "It has no work yet." : "\n" + table.text()));
    return {};
  });
}

Result<void> detach(const CommandOptions& options, const std::string& url) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  int count = 0;
  const AgentBody by_agent = [&](AgentSession& session) -> Result<void> {
    auto request = session.agent.detachRequest();
    request.setUrl(url);
    count = static_cast<int>(session.ask_patiently(kj::mv(request)).getCount());
    return {};
  };
  SHOAL_TRY_ASSIGN(lock, ask_or_lock(options, place, by_agent));
  if (lock) {
    SHOAL_TRY_ASSIGN(state, ClientState::load(place.state()));
    SHOAL_TRY_ASSIGN(detached, state.detach(url));
    count = detached;
  }
  if (count == 0 && !url.empty()) {
    return Error{ErrorCode::kNotFound, "not attached to " + url_without_query(url)};
  }
  if (options.json) {
    print_json(Json{{"detached", count}});
  } else {
    print_text("Detached from " + std::to_string(count) +
               (count == 1 ? " coordinator" : " coordinators"));
  }
  return {};
}

// --- consent

// A class of work as a coordinator offers it, or as the owner once denied it.
struct KnownClass {
  std::string url, coordinator;
  JobClass job_class;
  std::string purpose;
  int64_t sealed_bytes = 0;  // 0: not offered any more.
  bool allowed = true;
};

std::vector<KnownClass> known_classes(rpc::Snapshot::Reader snapshot) {
  std::vector<KnownClass> classes;
  for (const auto connection : snapshot.getConnections()) {
    std::vector<JobClass> denied;
    for (const auto one : connection.getDenied()) denied.push_back(read_job_class(one));
    const auto add = [&](JobClass job_class, const std::string& purpose, int64_t bytes) {
      const bool allowed = std::ranges::find(denied, job_class) == denied.end();
      classes.push_back({connection.getUrl().cStr(), connection.getName().cStr(),
                         std::move(job_class), purpose, bytes, allowed});
    };
    std::vector<JobClass> offered;
    for (const auto offer : connection.getCard().getOffers()) {
      offered.push_back(read_job_class(offer.getJobClass()));
      add(offered.back(), offer.getPurpose().cStr(), static_cast<int64_t>(offer.getSealedBytes()));
    }
    for (const JobClass& one : denied) {
      if (std::ranges::find(offered, one) == offered.end()) add(one, "", 0);
    }
  }
  return classes;
}

const char* privacy_word(const JobClass& job_class) { return privacy_name(job_class); }

Result<void> list_consents(const CommandOptions& options) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask(session.agent.snapshotRequest());
    Table table({{"allowed", "ALLOWED"},
                 {"model", "MODEL"},
                 {"privacy", "PRIVACY"},
                 {"kind", "KIND"},
                 {"sealed_bytes", "SIZE"},
                 {"coordinator", "COORDINATOR"},
                 {"url", ""},
                 {"purpose", "PURPOSE"}});
    for (const KnownClass& known : known_classes(answer.getSnapshot())) {
      table.add(
          {{known.allowed ? "yes" : "no", known.allowed},
           known.job_class.model,
           privacy_word(known.job_class),
           known.job_class.kind,
           {known.sealed_bytes == 0 ? "-" : text_of(Bytes{known.sealed_bytes}), known.sealed_bytes},
           known.coordinator,
           known.url,
           known.purpose});
    }
    if (options.json) {
      print_json(Json{{"classes", table.json()}});
    } else {
      print_text(table.empty() ? "No coordinator has said yet what work it has." : table.text());
    }
    return {};
  });
}

struct ConsentChoice {
  std::string model, coordinator, privacy;
};

Result<void> set_consent(const CommandOptions& options, const ConsentChoice& choice, bool allowed) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask(session.agent.snapshotRequest());
    std::vector<KnownClass> chosen;
    for (KnownClass& known : known_classes(answer.getSnapshot())) {
      const bool fits =
          known.job_class.model == choice.model &&
          (choice.privacy.empty() || choice.privacy == privacy_word(known.job_class)) &&
          (choice.coordinator.empty() || choice.coordinator == known.coordinator ||
           url_without_query(choice.coordinator) == url_without_query(known.url));
      if (fits) chosen.push_back(std::move(known));
    }
    if (chosen.empty()) {
      return Error{ErrorCode::kNotFound, "no coordinator offers such work with the model '" +
                                             choice.model + "': see shoal-client consent list"};
    }
    Json list = Json::array();
    for (const KnownClass& known : chosen) {
      auto request = session.agent.setConsentRequest();
      request.setUrl(known.url);
      write_job_class(known.job_class, request.initJobClass());
      request.setAllowed(allowed);
      session.ask(kj::mv(request));
      list.push_back({{"url", known.url},
                      {"model", known.job_class.model},
                      {"privacy", privacy_word(known.job_class)},
                      {"kind", known.job_class.kind},
                      {"allowed", allowed}});
      if (!options.json) {
        print_text(printable(known.job_class.model) + " (" + privacy_word(known.job_class) +
                   ") of " + printable(known.coordinator) + (allowed ? ": allowed" : ": denied"));
      }
    }
    if (options.json) print_json(Json{{"classes", list}});
    return {};
  });
}

void add_consent(Commands& commands, CLI::App& group, const char* name, const char* help,
                 bool allowed) {
  ConsentChoice& choice = commands.keep<ConsentChoice>();
  CLI::App& command = commands.add(group, name, help, [&choice, allowed](const auto& options) {
    return set_consent(options, choice, allowed);
  });
  command.add_option("model", choice.model, "As 'consent list' names it")->required();
  command.add_option("--coordinator", choice.coordinator,
                     "By URL or name; none: all that offer it");
  command.add_option("--privacy", choice.privacy, "public, anchored or group; none: all")
      ->check(CLI::IsMember({"public", "anchored", "group"}));
}

}  // namespace

void add_coordinator_commands(Commands& commands) {
  AttachChoice& choice = commands.keep<AttachChoice>();
  CLI::App& attach_command =
      commands.add("attach", "Join a coordinator by the URL that its administrator gave",
                   [&choice](const CommandOptions& options) {
                     return choice.preview ? preview(options, choice.url) : attach(options, choice);
                   });
  attach_command.add_option("url", choice.url, "shoal://host:port/?pin=...&invite=...")->required();
  attach_command.add_flag("--preview", choice.preview,
                          "Only show what it would ask; uses no invite and changes nothing");
  attach_command.add_option(
      "--deny", choice.deny,
      "A model that this machine shall not work on; may be given several times");
  std::string& detach_url = commands.keep<std::string>();
  commands
      .add("detach", "Leave a coordinator, or all of them",
           [&detach_url](const CommandOptions& options) { return detach(options, detach_url); })
      .add_option("url", detach_url, "Which one; none: all");

  CLI::App& consent = commands.group("consent", "On what this machine works");
  commands.add(consent, "list", "Classes of work that coordinators offer, and what you said",
               list_consents);
  add_consent(commands, consent, "allow", "Take work with a model", true);
  add_consent(commands, consent, "deny", "Take no work with a model; what runs is given back",
              false);
}

}  // namespace shoal::client
