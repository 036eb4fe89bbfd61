// shoal-worker: computes for a client that starts it. Of no use by hand but for --list.

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/cli.h"
#include "compute/worker/worker_server.h"

int main(int argc, char** argv) {
  shoal::CommandLine command_line("shoal-worker",
                                  "Computes stages of models for shoal-client, which starts it");
  shoal::worker::WorkerOptions options;
  bool list = false;
  CLI::App& app = command_line.app();
  app.add_flag("--list", list, "List the devices here as JSON, and end");
  app.add_option("--device", options.device,
                 "The device to compute on: an id, or a selector such as vulkan:0");
  app.add_option("--threads", options.threads, "Threads for computing on the CPU; 0: all cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("--rpc-fd", options.rpc_fd, "The number of the open socket to serve")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--memory-max", options.memory_max.count,
                 "Bytes that may be allocated on the host; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  command_line.set_body([&]() -> shoal::Result<void> {
    if (list) {
      std::cout << shoal::worker::list_devices_json() << std::endl;
      return {};
    }
    shoal::worker::run_worker(options);
  });
  return command_line.run(argc, argv);
}
