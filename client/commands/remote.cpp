// pair, pairings, unpair, and --remote: one machine's client asked from another.
//
// The asking side keeps the token of each client that it is paired with in its state folder, in a
// file that is its owner's alone.

#include <algorithm>

#include "base/text.h"
#include "client/commands/commands.h"
#include "client/commands/words.h"
#include "schema/limits.h"
#include "schema/pairing_url.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr std::string_view kScheme = "shoal+pair://";

StateFile remotes_file(const Workplace& place) {
  return StateFile(place.folders.state / "remotes");
}

// Each with its token as the URL's invite.
Result<std::vector<rpc::AttachUrl>> load_remotes(const Workplace& place) {
  std::vector<rpc::AttachUrl> remotes;
  const Result<StateFile::Loaded> loaded = remotes_file(place).load();
  if (!loaded.ok()) {
    if (loaded.error().code == ErrorCode::kNotFound) return remotes;
    return loaded.error();
  }
  try {  // The checksum held: another content is another version's.
    for (const Json& entry : Json::parse(as_text(loaded.value().bytes))) {
      SHOAL_TRY_ASSIGN(url, rpc::parse_pairing_url(entry.get<std::string>()));
      remotes.push_back(std::move(url));
    }
  } catch (const Json::exception& exception) {
    return Error{ErrorCode::kCorrupt, "the list of paired machines is not this version's: " +
                                          std::string(exception.what())};
  }
  return remotes;
}

bool is_same(const rpc::AttachUrl& a, const rpc::AttachUrl& b) {
  return a.host == b.host && a.port == b.port;
}

Result<void> remember_remote(const Workplace& place, const rpc::AttachUrl& url) {
  SHOAL_TRY_ASSIGN(remotes, load_remotes(place));
  std::erase_if(remotes, [&url](const rpc::AttachUrl& known) { return is_same(known, url); });
  remotes.push_back(url);
  Json list = Json::array();
  for (const rpc::AttachUrl& remote : remotes) list.push_back(rpc::format_pairing_url(remote));
  return remotes_file(place).save(as_bytes(list.dump()));
}

Result<void> pair(const CommandOptions& options) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask(session.agent.pairRequest());
    const std::string url = printable(answer.getUrl().cStr());
    if (options.json) {
      print_json(Json{{"url", url}, {"expires_ms", answer.getExpiresMs()}});
      return {};
    }
    print_text(
        "Until " + time_text(answer.getExpiresMs()) +
        " one other machine may pair with this URL:\n\n  " + url +
        "\n\nThere: shoal-client --remote 'URL' status\nWho has the URL can do whatever you can "
        "do with Shoal on this machine.");
    return {};
  });
}

Result<void> list_pairings(const CommandOptions& options) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask(session.agent.pairingsRequest());
    Table table(
        {{"id", "ID"}, {"name", "NAME"}, {"paired_ms", "PAIRED"}, {"last_used_ms", "LAST USED"}});
    for (const auto pairing : answer.getPairings()) {
      table.add({{std::to_string(pairing.getId()), pairing.getId()},
                 pairing.getName().cStr(),
                 {time_text(pairing.getPairedMs()), pairing.getPairedMs()},
                 {time_text(pairing.getLastUsedMs()), pairing.getLastUsedMs()}});
    }
    if (options.json) {
      print_json(Json{{"pairings", table.json()}});
    } else {
      print_text(table.empty() ? "No other machine is paired with this one." : table.text());
    }
    return {};
  });
}

Result<void> unpair(const CommandOptions& options, uint64_t id) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    auto request = session.agent.unpairRequest();
    request.setId(id);
    session.ask(kj::mv(request));
    if (options.json) {
      print_json(Json{{"unpaired", id}});
    } else {
      print_text("That machine may not come in any more.");
    }
    return {};
  });
}

}  // namespace

Result<rpc::AttachUrl> find_remote(const Workplace& place, const std::string& text) {
  if (text.find('?') != std::string::npos) {
    SHOAL_TRY_ASSIGN(url, rpc::parse_pairing_url(text));
    if (!url.invite.empty()) return url;
  }
  // Known by its address: with a scheme or without, with a pin or without.
  std::string address = text.substr(0, text.find('?'));
  if (address.starts_with(kScheme)) address.erase(0, kScheme.size());
  while (address.ends_with('/')) address.pop_back();
  SHOAL_TRY_ASSIGN(remotes, load_remotes(place));
  for (const rpc::AttachUrl& remote : remotes) {
    const bool ipv6 = remote.host.find(':') != std::string::npos;
    const std::string host = ipv6 ? "[" + remote.host + "]" : remote.host;
    if (address == host + ":" + std::to_string(remote.port)) return remote;
  }
  return Error{ErrorCode::kNotFound,
               "this machine is not paired with '" + printable(text.substr(0, text.find('?'))) +
                   "': give the whole URL that 'shoal-client pair' prints there"};
}

rpc::Agent::Client open_remote_agent(Loop loop, rpc::Connection& connection, const Workplace& place,
                                     const rpc::AttachUrl& url) {
  auto request = connection.bootstrap().castAs<rpc::RemoteAgent>().openRequest();
  request.setToken(url.invite);
  request.setName(std::string(cut_utf8(host_name(), limits::kNameBytesMax)));
  kj::Promise<capnp::Response<rpc::RemoteAgent::OpenResults>> opening = request.send();
  const auto answer =
      loop.timer.timeoutAfter(20 * kj::SECONDS, kj::mv(opening)).wait(loop.io.waitScope);
  rpc::AttachUrl known = url;
  known.invite = rpc::text_of(answer.getToken(), limits::kInviteBytesMax, "token");
  // The URL's token works once: without the new one, this machine would have to pair again.
  if (known.invite != url.invite && !known.invite.empty()) {
    rpc::require(remember_remote(place, known));
  }
  return answer.getAgent();
}

void add_remote_commands(Commands& commands) {
  commands.add("pair", "Let one other machine pair with this client, within ten minutes", pair);
  commands.add("pairings", "Which other machines may ask this client", list_pairings);
  uint64_t& id = commands.keep<uint64_t>();
  commands
      .add("unpair", "Let one of them in no more",
           [&id](const CommandOptions& options) { return unpair(options, id); })
      .add_option("id", id, "As 'pairings' numbers it")
      ->required();
}

}  // namespace shoal::client
