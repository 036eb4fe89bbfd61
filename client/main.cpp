// shoal-client: the volunteer's daemon without a screen, and its command line.

#include <CLI/CLI.hpp>

#include "base/cli.h"
#include "client/client.h"

namespace client = shoal::client;

int main(int argc, char** argv) {
  shoal::CommandLine command_line("shoal-client",
                                  "Lends this machine's devices to large language models");
  client::CommandOptions options;
  std::string data;
  std::string url;
  int threads = -1;
  CLI::App& app = command_line.app();
  app.add_option("--data", data, "Keep configuration, state, cache and sockets below this folder");

  const auto with_options = [&](auto act) {
    return [&, act]() -> shoal::Result<void> {
      if (!data.empty()) options.data = data;
      if (threads >= 0) options.threads = threads;
      options.json = command_line.json();
      return act();
    };
  };
  const auto add_devices = [&](CLI::App& command, const char* name) {
    command
        .add_option(
            name, options.devices,
            "Devices by id, selector or plane, such as cpu,vulkan:0; instead of the settings'")
        ->delimiter(',');
    command.add_option("--threads", threads, "Threads for computing on the CPU; 0: all cores")
        ->check(CLI::Range(0, 1024));
  };

  command_line
      .command("attach", "Join a coordinator by the URL that its administrator gave",
               with_options([&] { return client::attach_client(options, url); }))
      .add_option("url", url, "shoal://host:port/?pin=...&invite=...")
      ->required();
  command_line
      .command("detach", "Leave a coordinator, or all of them",
               with_options([&] { return client::detach_client(options, url); }))
      .add_option("url", url, "Which one; none: all");
  CLI::App& run = command_line.command("run", "Lend the devices until told to stop (SIGTERM)",
                                       with_options([&] { return client::run_client(options); }));
  add_devices(run, "--devices");
  run.add_option(
         "--mode", options.mode,
         "How to work until the owner chooses otherwise: by the rules, always (for servers: "
         "whoever uses the computer), or not")
      ->check(CLI::IsMember({"rules", "always", "paused"}));
  add_devices(command_line.command("devices", "List the devices of this machine",
                                   with_options([&] { return client::show_devices(options); })),
              "--devices");
  add_devices(command_line.command("benchmark", "Test and measure devices",
                                   with_options([&] { return client::run_benchmark(options); })),
              "--device,--devices");
  command_line.command("status", "Show what the running client does",
                       with_options([&] { return client::show_status(options); }));
  return command_line.run(argc, argv);
}
