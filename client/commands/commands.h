#pragma once
// The frame of the client's command line: what every command gets, how it asks the client that
// runs, and where each family of commands is added. A family is one file, options and answers
// together.

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cli.h"
#include "client/client.h"
#include "client/commands/table.h"
#include "client/workplace.h"
#include "schema/agent.capnp.h"

namespace shoal::client {

class Commands {
 public:
  using Body = std::function<Result<void>(const CommandOptions& options)>;

  explicit Commands(CommandLine& line);

  CLI::App& group(const std::string& name, const std::string& help);
  CLI::App& add(const std::string& name, const std::string& help, Body body);
  CLI::App& add(CLI::App& group, const std::string& name, const std::string& help, Body body);

  // Where a command's arguments are put. Kept as long as the commands.
  template <class T>
  T& keep() {
    auto kept = std::make_unique<KeptValue<T>>();
    T& value = kept->value;
    kept_.push_back(std::move(kept));
    return value;
  }

  // --devices (under the names given) and --threads.
  void add_device_options(CLI::App& command, const char* names);
  CommandOptions& options() { return options_; }

 private:
  struct Kept {
    virtual ~Kept() = default;
  };
  template <class T>
  struct KeptValue final : Kept {
    T value{};
  };

  CommandLine::Body with_options(Body body);

  CommandLine& line_;
  CommandOptions options_;
  std::string data_;
  int threads_ = -1;
  std::vector<std::unique_ptr<Kept>> kept_;
};

void add_coordinator_commands(Commands& commands);  // attach, detach, consent
void add_device_commands(Commands& commands);       // devices, benchmark, lend
void add_log_commands(Commands& commands);          // log, bundle, sensors
void add_mode_commands(Commands& commands);         // pause, resume, mode, leave-by, stop
void add_record_commands(Commands& commands);       // trace, stats, history, receipts
void add_remote_commands(Commands& commands);       // pair, pairings, unpair
void add_rule_commands(Commands& commands);         // rules, what-if
void add_run_command(Commands& commands);
void add_status_command(Commands& commands);

// The client that a command asks: the one that runs on this data folder, or one of another machine.
struct AgentSession {
  Loop loop;
  rpc::Agent::Client agent;

  // Throws kTimeout when there is no answer within `limit`.
  template <class Request>
  auto ask(Request request, kj::Duration limit = 20 * kj::SECONDS) {
    return in_time(request.send(), limit);
  }
  // For what takes as long as it takes.
  template <class Request>
  auto ask_patiently(Request request) {
    return request.send().wait(loop.io.waitScope);
  }

 private:
  template <class T>
  T in_time(kj::Promise<T> promise, kj::Duration limit) {
    kj::Promise<T> late = loop.timer.afterDelay(limit).then([]() -> kj::Promise<T> {
      rpc::throw_error({ErrorCode::kTimeout, "the client does not answer"});
    });
    return promise.exclusiveJoin(kj::mv(late)).wait(loop.io.waitScope);
  }
};

// How people name devices, by their ids: "vulkan:0".
class DeviceNames {
 public:
  explicit DeviceNames(AgentSession& session);
  // One that is not known, as a device that is gone for long, is called by its id.
  std::string of(const std::string& id) const;

 private:
  std::map<std::string, std::string> selectors_;
};

using AgentBody = std::function<Result<void>(AgentSession& session)>;

// kUnavailable when no client runs, with what to do.
Result<void> ask_agent(const CommandOptions& options, const AgentBody& body);

// For what can also be done while no client runs: asks the one that runs, or the one of --remote;
// when there is none, answers with the lock of the folder, which the caller then has to itself.
Result<std::optional<FileLock>> ask_or_lock(const CommandOptions& options, const Workplace& place,
                                            const AgentBody& body);

// What a command that works on this machine's files answers to --remote.
Result<void> refuse_remote(const CommandOptions& options);

// As a client of another machine that this one is paired with, or pairs now (remote.cpp).
rpc::Agent::Client open_remote_agent(Loop loop, rpc::Connection& connection, const Workplace& place,
                                     const rpc::AttachUrl& url);
Result<rpc::AttachUrl> find_remote(const Workplace& place, const std::string& text);

void print_json(const Json& json);
void print_text(const std::string& text);  // A line, or lines.
bool nobody_listens();                     // The pipe that these go to is closed.

}  // namespace shoal::client
