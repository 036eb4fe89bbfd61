// shoal-coordinator: reads the options, opens the data folder, and joins the coordinator to its
// sockets.

#include <kj/async-unix.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/cli.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/random.h"
#include "coordinator/coordinator.h"

namespace shoal {
namespace {

std::string passphrase() {
  const char* const text = std::getenv("SHOAL_PASSPHRASE");
  return text == nullptr ? "" : text;
}

Result<void> serve(const std::filesystem::path& data, const std::string& listen, bool json) {
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
  SHOAL_TRY_ASSIGN(folder, open_data_folder(data, passphrase()));
  if (!listen.empty()) SHOAL_TRY(set_listen(folder.settings, listen));

  kj::AsyncIoContext io = kj::setupAsyncIo();
  const SystemClock clock;
  Random random(seed_from_system());
  kj::Timer& timer = io.provider->getTimer();
  kj::Network& network = io.provider->getNetwork();
  SHOAL_TRY_ASSIGN(coordinator, Coordinator::open(std::move(folder), timer, clock, random));

  const CoordinatorSettings& settings = coordinator->settings();
  const auto hosts =
      rpc::listen_tls(network, timer, settings.listen_host, settings.listen_port,
                      coordinator->certificate(),
                      [&](rpc::Peer peer) { return coordinator->host_door(kj::mv(peer)); })
          .wait(io.waitScope);
  coordinator->set_port(hosts->port());
  const std::filesystem::path socket = std::filesystem::absolute(data) / "admin.sock";
  const auto admins = rpc::listen_unix(network, timer, socket.string(), [&](rpc::Peer) {
                        return coordinator->admin_door();
                      }).wait(io.waitScope);
  const std::filesystem::path address = data / "address";
  SHOAL_TRY(write_file_durably(
      address, as_bytes(settings.listen_host + ":" + std::to_string(hosts->port()) + "\n")));

  const std::string url = coordinator->attach_url();
  if (json) {
    std::printf("{\"url\":\"%s\",\"port\":%u}\n", url.c_str(), unsigned{hosts->port()});
  } else {
    std::printf("%s\n", url.c_str());
  }
  std::fflush(stdout);
  log_info("coordinator", "listening",
           {{"address", settings.listen_host}, {"port", hosts->port()}});

  const auto told_to_stop = [&] {
    return io.unixEventPort.onSignal(SIGTERM)
        .exclusiveJoin(io.unixEventPort.onSignal(SIGINT))
        .ignoreResult();
  };
  told_to_stop().wait(io.waitScope);
  log_info("coordinator", "stopping");
  coordinator->drain().exclusiveJoin(told_to_stop()).wait(io.waitScope);  // Told twice: at once.
  std::error_code ignored;  // They only help people and scripts.
  std::filesystem::remove(address, ignored);
  std::filesystem::remove(socket, ignored);
  return {};
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  using namespace shoal;
  CommandLine line("shoal-coordinator",
                   "Shoal's coordinator: lends out work to volunteers' machines.");
  std::string data, listen;
  line.app().add_option("--data", data, "The data folder (shoalctl init makes it)");
  line.app().add_option("--listen", listen, "HOST:PORT to listen on, instead of the settings'");
  line.set_body([&]() -> Result<void> {
    std::filesystem::path folder = data;
    if (data.empty()) {
      SHOAL_TRY_ASSIGN(usual, default_data_folder());
      folder = usual;
    }
    try {  // KJ reports by exceptions; they end here.
      return serve(folder, listen, line.json());
    } catch (const kj::Exception& exception) {
      return rpc::error_of(exception);
    }
  });
  return line.run(argc, argv);
}
