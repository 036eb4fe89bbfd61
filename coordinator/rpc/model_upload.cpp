#include "coordinator/rpc/model_upload.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "coordinator/rpc/card.h"
#include "coordinator/session/session.h"
#include "coordinator/work/credit.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

// A shard's file goes when no model has it any more.
void remove_unused(Parts& parts, const Digest& digest) {
  const Result<bool> used = parts.models.has_shard(digest);
  if (used.ok() && used.value()) return;
  const Result<void> removed = used.ok() ? parts.shards.remove(digest) : Result<void>(used.error());
  // The next start removes it.
  if (!removed.ok()) log_warning("coordinator", "shard_not_removed", {{"why", removed.error()}});
}

class ModelUploadServer final : public rpc::ModelUpload::Server {
 public:
  ModelUploadServer(Parts& parts, ModelRow row, ModelManifest manifest)
      : parts_(parts), row_(std::move(row)), manifest_(std::move(manifest)) {}

  ~ModelUploadServer() noexcept(false) {
    current_.reset();
    if (stored_) return;
    for (size_t i = 0; i < done_; ++i) remove_unused(parts_, row_.shards[i].digest);
  }

  kj::Promise<void> write(WriteContext context) override {
    const auto params = context.getParams();
    rpc::require_at_most(params.getBytes().size(), limits::kChunkBytesMax, "bytes");
    const size_t shard = params.getShard();
    if (current_ && shard == done_ + 1) finish_shard();
    if (stored_ || shard != done_ || shard >= row_.shards.size()) {
      rpc::throw_error(
          {ErrorCode::kInvalid, "shard " + std::to_string(shard) + " is not the one that follows"});
    }
    const ShardRow& row = row_.shards[shard];
    if (!current_) {
      current_.emplace(
          rpc::require(parts_.shards.upload(row.digest, static_cast<uint64_t>(row.sealed_bytes))));
    }
    rpc::require(current_->write(rpc::bytes_of(params.getBytes())));
    return kj::READY_NOW;
  }

  kj::Promise<void> finish(FinishContext context) override {
    if (current_) finish_shard();
    if (stored_ || done_ != row_.shards.size()) {
      rpc::throw_error({ErrorCode::kInvalid, "only " + std::to_string(done_) + " of the model's " +
                                                 std::to_string(row_.shards.size()) +
                                                 " shards have come"});
    }
    row_.published_at = parts_.clock.now_wall();
    rpc::require(parts_.models.add(row_));
    stored_ = true;
    parts_.journal.note("model_published",
                        row_.name + ", " + std::to_string(row_.shards.size()) + " shards");
    forget_offered_models(parts_);
    write_model_info(context.getResults().initModel(), row_, facts_of(manifest_));
    return kj::READY_NOW;
  }

 private:
  void finish_shard() {
    const Result<void> finished = current_->finish();
    current_.reset();
    rpc::require(finished);
    ++done_;
  }

  Parts& parts_;
  ModelRow row_;
  const ModelManifest manifest_;
  std::optional<ShardStore::Upload> current_;
  size_t done_ = 0;  // Shards that are whole on the disk.
  bool stored_ = false;
};

}  // namespace

rpc::ModelUpload::Client begin_model_upload(Parts& parts, const std::string& text,
                                            capnp::List<capnp::Data>::Reader keys,
                                            std::string purpose, std::string group) {
  ModelManifest manifest = rpc::require(read_model_manifest(text));
  if (manifest.shards.size() > limits::kFragmentsMax || keys.size() != manifest.shards.size()) {
    rpc::throw_error({ErrorCode::kInvalid, "keys: " + std::to_string(keys.size()) + " for " +
                                               std::to_string(manifest.shards.size()) + " shards"});
  }
  if (rpc::require(parts.models.find(manifest.name))) {
    rpc::throw_error(
        {ErrorCode::kExists, "there is a model " + manifest.name +
                                 " already; remove it first, or publish under another --name"});
  }
  if (!is_printable(purpose)) {
    rpc::throw_error({ErrorCode::kInvalid,
                      "purpose: it holds what cannot be shown: control characters, or no UTF-8"});
  }
  ModelRow row;
  row.name = manifest.name;
  row.digest = manifest.digest;
  row.manifest = text;
  row.purpose = std::move(purpose);
  row.group = std::move(group);
  for (uint i = 0; i < keys.size(); ++i) {
    if (keys[i].size() != kKeyBytes) {
      rpc::throw_error(
          {ErrorCode::kInvalid, "keys: key " + std::to_string(i) + " is not of 32 bytes"});
    }
    const ManifestShard& shard = manifest.shards[i];
    if (static_cast<uint64_t>(shard.sealed_bytes) > limits::kShardBytesMax) {
      rpc::throw_error({ErrorCode::kInvalid, "shard " + std::to_string(i) + " is too large"});
    }
    const ByteSpan key = rpc::bytes_of(keys[i]);
    row.shards.push_back({shard.digest, shard.sealed_bytes, parts.shards.wrap(SecretBytes(key))});
    // The message is ours alone, and nobody reads the key in it again.
    wipe({const_cast<std::byte*>(key.data()), key.size()});
    row.sealed_bytes += shard.sealed_bytes;
  }
  row.fragments = static_cast<int64_t>(row.shards.size());
  // A model that no session could use is refused now, not at its first use.
  rpc::require(load_live_model(row));
  return kj::heap<ModelUploadServer>(parts, std::move(row), std::move(manifest));
}

ModelFacts facts_of(const ModelManifest& manifest) {
  ModelFacts facts;
  facts.architecture = manifest.architecture;
  facts.context = manifest.context;
  std::vector<FragmentCost> costs;
  Bytes smallest{INT64_MAX};
  for (const ManifestShard& shard : manifest.shards) {
    costs.push_back(shard.cost);
    smallest = std::min(smallest, stage_memory({&shard.cost, 1}, 1, 1));
  }
  facts.credit_per_row = credit_of(credit_parts(work_flops(costs, 1)));
  facts.smallest_need = smallest;
  return facts;
}

const ModelFacts& model_facts(Parts& parts, const ModelRow& row) {
  if (const auto known = parts.model_facts.find(row.id); known != parts.model_facts.end()) {
    return known->second;
  }
  const auto read = [&]() -> Result<ModelFacts> {
    SHOAL_TRY_ASSIGN(found, parts.models.find(row.name));
    if (!found) return Error{ErrorCode::kNotFound, "there is no model " + row.name};
    SHOAL_TRY_ASSIGN(manifest, read_model_manifest(found->manifest));
    return facts_of(manifest);
  };
  Result<ModelFacts> facts = read();
  if (!facts.ok()) {
    log_warning("coordinator", "model_damaged", {{"model", row.name}, {"why", facts.error()}});
    facts = ModelFacts{.architecture = "damaged", .damaged = true};
  }
  return parts.model_facts[row.id] = std::move(facts).value();
}

void write_model_info(rpc::ModelInfo::Builder out, const ModelRow& row, const ModelFacts& facts) {
  out.setName(row.name);
  out.setDigest(row.digest.hex());
  out.setArchitecture(facts.architecture);
  out.setFragments(static_cast<uint32_t>(row.fragments));
  out.setSealedBytes(static_cast<uint64_t>(row.sealed_bytes));
  out.setContext(static_cast<uint32_t>(facts.context));
  out.setPublishedAtMs(row.published_at.count);
  out.setPurpose(row.purpose);
  out.setGroup(row.group);
}

Result<void> remove_model(Parts& parts, const std::string& name) {
  SHOAL_TRY_ASSIGN(found, parts.models.find(name));
  if (!found)
    return Error{ErrorCode::kNotFound,
                 "there is no model " + name + "; shoalctl model list shows them"};
  const auto users = std::ranges::count_if(
      parts.live, [&](const Session* session) { return session->model_name() == name; });
  if (users > 0) {
    return Error{ErrorCode::kUnavailable, "model " + name + " is in use by " +
                                              std::to_string(users) +
                                              " live sessions; try again when they have ended"};
  }
  if (parts.jobs->uses_model(name)) {
    return Error{ErrorCode::kUnavailable,
                 "model " + name +
                     " is in use by a job; cancel it first, or try again when it is done and "
                     "its output is written"};
  }
  SHOAL_TRY(parts.models.remove(found->id));
  parts.live_models.erase(name);
  parts.model_facts.erase(found->id);
  forget_offered_models(parts);
  for (const ShardRow& shard : found->shards) remove_unused(parts, shard.digest);
  parts.journal.note("model_removed", name);
  return {};
}

Result<std::shared_ptr<const LiveModel>> use_model(Parts& parts, const std::string& name) {
  if (const auto known = parts.live_models.find(name); known != parts.live_models.end())
    return known->second;
  SHOAL_TRY_ASSIGN(row, parts.models.find(name));
  if (!row) {
    return Error{
        ErrorCode::kNotFound,
        "there is no model " + name + "; shoalctl model list shows them, model publish adds one"};
  }
  SHOAL_TRY_ASSIGN(model, load_live_model(*row));
  parts.live_models[name] = model;
  return model;
}

}  // namespace shoal
