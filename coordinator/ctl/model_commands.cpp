// shoalctl: model publish, list and remove.

#include <cstdio>
#include <cstdlib>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/host.h"
#include "base/secrets.h"
#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "coordinator/work/manifest.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal::ctl {
namespace {

constexpr uint64_t kOutputBytesMax = uint64_t{128} << 20;  // A manifest, and text around it.

Json model_json(rpc::ModelInfo::Reader model) {
  return {{"name", model.getName().cStr()},
          {"digest", model.getDigest().cStr()},
          {"architecture", model.getArchitecture().cStr()},
          {"fragments", model.getFragments()},
          {"sealed_bytes", model.getSealedBytes()},
          {"context", model.getContext()},
          {"published_at_ms", model.getPublishedAtMs()}};
}

std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const size_t line = text.rfind('\n');
  return std::string(line == std::string_view::npos ? text : text.substr(line + 1));
}

// What `shoal-run cut` answered.
struct Cut {
  std::string manifest;
  std::vector<SecretBytes> keys;
};

Result<Cut> cut(Link& link, const std::filesystem::path& model, const std::filesystem::path& out) {
  SHOAL_TRY_ASSIGN(self, own_program());
  const std::filesystem::path program = self.parent_path() / "shoal-run";
  std::error_code code;
  if (!std::filesystem::exists(program, code)) {
    return Error{ErrorCode::kNotFound,
                 "publishing needs shoal-run beside shoalctl, and there is none in " +
                     self.parent_path().string()};
  }
  SHOAL_TRY_ASSIGN(pipe, make_socket_pair());
  ChildOptions options;
  options.argv = {
      program.string(), "cut",        "--model", std::filesystem::absolute(model).string(),
      "--out",          out.string(), "--json"};
  options.stdout_fd = pipe.second.get();
  SHOAL_TRY_ASSIGN(child, ChildProcess::spawn(std::move(options)));
  pipe.second.reset();
  auto stream = link.io.lowLevelProvider->wrapSocketFd(pipe.first.release(),
                                                       kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
  const kj::String text = stream->readAllText(kOutputBytesMax).wait(link.io.waitScope);
  std::optional<ChildExit> exit;
  while (!exit) exit = child.wait(Millis{1000});

  const auto json = nlohmann::json::parse(last_line({text.begin(), text.size()}), nullptr, false);
  if (!exit->clean()) {
    std::string why = exit->text();
    if (json.is_object() && json.contains("error") && json["error"].is_object()) {
      why = json["error"].value("message", why);
    }
    return Error{exit->code == 3 ? ErrorCode::kNotFound : ErrorCode::kInvalid,
                 "cannot cut " + model.string() + ": " + why};
  }
  const Error odd{ErrorCode::kCorrupt, "shoal-run cut answered what shoalctl does not understand"};
  if (!json.is_object() || !json.contains("manifest") || !json.contains("keys") ||
      !json["keys"].is_array()) {
    return odd;
  }
  Cut result;
  result.manifest =
      json["manifest"].is_string() ? json["manifest"].get<std::string>() : json["manifest"].dump();
  for (const auto& key : json["keys"]) {
    if (!key.is_string()) return odd;
    SHOAL_TRY_ASSIGN(bytes, hex_decode(key.get<std::string>()));
    result.keys.emplace_back(ByteSpan(bytes));
    wipe(bytes);
  }
  return result;
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
    request.send().wait(link.io.waitScope);
    offset += count;
  }
  return {};
}

}  // namespace

Result<void> model_publish(const Context& context, const std::filesystem::path& model,
                           const std::string& name) {
  std::error_code code;
  if (!std::filesystem::exists(model, code)) {
    return Error{ErrorCode::kNotFound, "there is no " + model.string()};
  }
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const TempDir folder;  // Sealed shards only; the keys never touch the disk.
    SHOAL_TRY_ASSIGN(parts, cut(link, model, folder.path()));
    std::string manifest = parts.manifest;
    if (!name.empty()) {
      SHOAL_TRY_ASSIGN(renamed, rename_manifest(manifest, name));
      manifest = renamed;
    }
    SHOAL_TRY_ASSIGN(checked, read_model_manifest(manifest));
    if (checked.shards.size() != parts.keys.size()) {
      return Error{ErrorCode::kCorrupt,
                   "shoal-run cut answered another number of keys than shards"};
    }
    auto request = link.admin.publishModelRequest();
    request.setManifest(manifest);
    auto keys = request.initKeys(static_cast<uint>(parts.keys.size()));
    for (uint i = 0; i < keys.size(); ++i) keys.set(i, rpc::kj_bytes(parts.keys[i].view()));
    rpc::ModelUpload::Client upload = request.send().wait(link.io.waitScope).getUpload();
    for (uint32_t i = 0; i < checked.shards.size(); ++i) {
      SHOAL_TRY(send_shard(link, upload, i, folder / (checked.shards[i].digest.hex() + ".shard")));
    }
    const auto response = upload.finishRequest().send().wait(link.io.waitScope);
    const auto published = response.getModel();
    if (context.json) {
      print_json(model_json(published));
    } else {
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
                      std::to_string(model.getContext()), show_time(model.getPublishedAtMs())});
    }
    if (context.json) {
      print_json({{"models", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("No models yet: shoalctl model publish PATH.\n");
    } else {
      print_table({"NAME", "ARCHITECTURE", "FRAGMENTS", "SEALED", "CONTEXT", "PUBLISHED"}, rows);
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
