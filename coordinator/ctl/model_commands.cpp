// shoalctl: model publish, list and remove.

#include <capnp/orphan.h>
#include <kj/async-unix.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/host.h"
#include "base/secrets.h"
#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "coordinator/ctl/cut_answer.h"
#include "coordinator/work/manifest.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal::ctl {
namespace {

constexpr size_t kOutputBytesMax = size_t{128} << 20;  // A manifest, and text around it.

Json model_json(rpc::ModelInfo::Reader model) {
  return {{"name", model.getName().cStr()},
          {"digest", model.getDigest().cStr()},
          {"architecture", model.getArchitecture().cStr()},
          {"fragments", model.getFragments()},
          {"sealed_bytes", model.getSealedBytes()},
          {"context", model.getContext()},
          {"published_at_ms", model.getPublishedAtMs()},
          {"purpose", model.getPurpose().cStr()},
          {"group", model.getGroup().cStr()}};
}

// What `shoal-run cut` made.
struct Cut {
  std::string manifest;
  std::vector<SecretBytes> keys;
  Json quantised = Json::array();  // What rounding cost, by kind of weights.
};

// The outcome, unless a person or the system wants this program to end: then what it has made so
// far is removed on the way out.
template <class T>
T unless_told_to_stop(Link& link, kj::Promise<T> promise) {
  const auto told = [&](int signal) {
    return link.io.unixEventPort.onSignal(signal).then([](siginfo_t&&) -> kj::Promise<T> {
      rpc::throw_error({ErrorCode::kUnavailable, "told to stop: nothing was published"});
    });
  };
  return promise.exclusiveJoin(told(SIGINT)).exclusiveJoin(told(SIGTERM)).wait(link.io.waitScope);
}

// All that comes, in memory that is wiped.
Result<SecretBytes> read_all(Link& link, kj::AsyncInputStream& stream, size_t& size) {
  SecretBytes bytes(size_t{1} << 20);
  size = 0;
  while (true) {
    if (size == bytes.size()) {
      if (bytes.size() >= kOutputBytesMax) {
        return Error{ErrorCode::kNoSpace, "shoal-run cut prints more than a manifest can have"};
      }
      SecretBytes larger(2 * bytes.size());
      std::ranges::copy(bytes.view(), larger.edit().begin());
      bytes = std::move(larger);
    }
    const std::span<std::byte> room = bytes.edit().subspan(size);
    const size_t count = unless_told_to_stop(link, stream.tryRead(room.data(), 1, room.size()));
    if (count == 0) return bytes;
    size += count;
  }
}

Result<Cut> cut(Link& link, const PublishOptions& publishing, const std::filesystem::path& out) {
  const std::filesystem::path model = publishing.path;
  SHOAL_TRY_ASSIGN(self, own_program());
  const std::filesystem::path program = self.parent_path() / "shoal-run";
  if (!is_there(program)) {
    return Error{ErrorCode::kNotFound,
                 "publishing needs shoal-run beside shoalctl, and there is none in " +
                     self.parent_path().string()};
  }
  SHOAL_TRY_ASSIGN(pipe, make_socket_pair());
  ChildOptions options;
  options.argv = {
      program.string(), "cut",        "--model", std::filesystem::absolute(model).string(),
      "--out",          out.string(), "--json"};
  if (!publishing.quantize.empty()) {
    options.argv.push_back("--quantize");
    options.argv.push_back(publishing.quantize);
  }
  options.stdout_fd = pipe.second.get();
  SHOAL_TRY_ASSIGN(child, ChildProcess::spawn(std::move(options)));
  pipe.second.reset();
  auto stream = link.io.lowLevelProvider->wrapSocketFd(pipe.first.release(),
                                                       kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
  size_t size = 0;
  SHOAL_TRY_ASSIGN(output, read_all(link, *stream, size));
  std::optional<ChildExit> exit;
  while (!exit) exit = child.wait(Millis{1000});

  SHOAL_TRY_ASSIGN(answer, read_cut_answer(output.edit().first(size)));
  const nlohmann::json& json = answer.json;
  if (!exit->clean()) {
    std::string why = exit->text();
    if (json.is_object() && json.contains("error") && json["error"].is_object()) {
      why = json["error"].value("message", why);
    }
    return Error{exit->code == 3 ? ErrorCode::kNotFound : ErrorCode::kInvalid,
                 "cannot cut " + model.string() + ": " + why};
  }
  if (!json.is_object() || !json.contains("manifest") || !json.contains("keys")) {
    return Error{ErrorCode::kCorrupt, "shoal-run cut answered what shoalctl does not understand"};
  }
  Cut result;
  result.manifest =
      json["manifest"].is_string() ? json["manifest"].get<std::string>() : json["manifest"].dump();
  result.keys = std::move(answer.keys);
  if (json.contains("quantised")) result.quantised = json["quantised"];
  return result;
}

void print_quantised(const Json& lines) {
  if (!lines.is_array() || lines.empty()) return;
  std::printf("How far rounding moved the weights (root mean square, of their own):\n");
  for (const Json& line : lines) {
    if (!line.is_object()) continue;
    std::printf("  %-18s %-12s %6.2f %%, at worst %6.2f %% in %s\n",
                printable(line.value("weights", "")).c_str(),
                printable(line.value("types", "")).c_str(), line.value("relative_error", 0.0) * 100,
                line.value("worst", 0.0) * 100, printable(line.value("worst_tensor", "")).c_str());
  }
}

Result<void> send_shard(Link& link, rpc::ModelUpload::Client& upload, uint32_t index,
                        const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(file, InputFile::open(path));
  ByteVector chunk(limits::kChunkBytesMax);
  for (uint64_t offset = 0; offset < file.size();) {
    SHOAL_TRY_ASSIGN(count, file.read_at(offset, chunk));
    if (count == 0) return Error{ErrorCode::kIo, path.string() + " ends too early"};
    auto request = upload.writeRequest(capnp::MessageSize{count / 8 + 64, 0});
    request.setShard(index);
    request.setBytes(rpc::kj_bytes(ByteSpan(chunk).first(count)));
    unless_told_to_stop(link, kj::Promise<void>(request.send()));
    offset += count;
  }
  return {};
}

}  // namespace

Result<void> model_publish(const Context& context, const PublishOptions& options) {
  const std::filesystem::path model = options.path;
  if (!is_there(model)) {
    return Error{ErrorCode::kNotFound, "there is no " + model.string()};
  }
  // Heard by unless_told_to_stop() alone.
  kj::UnixEventPort::captureSignal(SIGINT);
  kj::UnixEventPort::captureSignal(SIGTERM);
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const TempDir folder;  // Sealed shards only; the keys never touch the disk.
    SHOAL_TRY_ASSIGN(parts, cut(link, options, folder.path()));
    std::string manifest = parts.manifest;
    if (!options.name.empty()) {
      SHOAL_TRY_ASSIGN(renamed, rename_manifest(manifest, options.name));
      manifest = renamed;
    }
    SHOAL_TRY_ASSIGN(checked, read_model_manifest(manifest));
    if (checked.shards.size() != parts.keys.size()) {
      return Error{ErrorCode::kCorrupt,
                   "shoal-run cut answered another number of keys than shards"};
    }
    auto request = link.admin.publishModelRequest();
    request.setManifest(manifest);
    request.setPurpose(options.purpose);
    request.setGroup(options.group);
    auto keys = request.initKeys(static_cast<uint>(parts.keys.size()));
    // The message points at the keys where they are, which is until the model is published, and
    // holds no copy of them.
    for (uint i = 0; i < keys.size(); ++i) {
      keys.adopt(i, capnp::Orphanage::getForMessageContaining(keys).referenceExternalData(
                        rpc::kj_bytes(parts.keys[i].view())));
    }
    rpc::ModelUpload::Client upload =
        unless_told_to_stop(
            link, kj::Promise<capnp::Response<rpc::Admin::PublishModelResults>>(request.send()))
            .getUpload();
    for (uint32_t i = 0; i < checked.shards.size(); ++i) {
      SHOAL_TRY(send_shard(link, upload, i, folder / (checked.shards[i].digest.hex() + ".shard")));
    }
    const auto response =
        unless_told_to_stop(link, kj::Promise<capnp::Response<rpc::ModelUpload::FinishResults>>(
                                      upload.finishRequest().send()));
    const auto published = response.getModel();
    if (context.json) {
      Json object = model_json(published);
      if (!options.quantize.empty()) object["quantised"] = parts.quantised;
      print_json(object);
    } else {
      print_quantised(parts.quantised);
      std::printf("Published %s: %u shards, %s sealed.\n",
                  printable(published.getName().cStr()).c_str(), published.getFragments(),
                  show_bytes(published.getSealedBytes()).c_str());
    }
    return {};
  });
}

Result<void> model_list(const Context& context) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const auto response = link.admin.listModelsRequest().send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto model : response.getModels()) {
      all.push_back(model_json(model));
      rows.push_back({model.getName().cStr(), model.getArchitecture().cStr(),
                      std::to_string(model.getFragments()), show_bytes(model.getSealedBytes()),
                      std::to_string(model.getContext()), show_time(model.getPublishedAtMs()),
                      text_or_dash(model.getGroup()), model.getPurpose().cStr()});
    }
    if (context.json) {
      print_json({{"models", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("No models yet: shoalctl model publish PATH.\n");
    } else {
      print_table({"NAME", "ARCHITECTURE", "FRAGMENTS", "SEALED", "CONTEXT", "PUBLISHED", "GROUP",
                   "PURPOSE"},
                  rows);
    }
    return {};
  });
}

Result<void> model_remove(const Context& context, const std::string& name) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.removeModelRequest();
    request.setName(name);
    request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"removed", name}});
    } else {
      std::printf("Removed %s.\n", name.c_str());
    }
    return {};
  });
}

}  // namespace shoal::ctl
