#include "client/stage_loader.h"

#include <algorithm>

#include "base/log.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {

Result<std::vector<ShardFetcher::Wanted>> read_shards(capnp::List<rpc::SealedShard>::Reader shards,
                                                      const std::string& pin) {
  const auto refuse = [](const std::string& why) { return Error{ErrorCode::kInvalid, why}; };
  if (shards.size() == 0 || shards.size() > limits::kFragmentsMax) {
    return refuse("shards has " + std::to_string(shards.size()) + " entries, not within 1 to " +
                  std::to_string(limits::kFragmentsMax));
  }
  std::vector<ShardFetcher::Wanted> wanted;
  for (const rpc::SealedShard::Reader shard : shards) {
    const Result<Digest> digest = Digest::from_bytes(rpc::bytes_of(shard.getDigest()));
    if (!digest.ok()) return refuse("shard.digest: " + digest.error().message);
    const uint64_t bytes = shard.getSealedBytes();
    if (bytes == 0 || bytes > limits::kShardBytesMax) {
      return refuse("shard.sealedBytes is " + std::to_string(bytes) + ", not within 1 to " +
                    std::to_string(limits::kShardBytesMax));
    }
    if (shard.getSealedKey().size() > limits::kKeyBytesMax) {
      return refuse("shard.sealedKey has " + std::to_string(shard.getSealedKey().size()) +
                    " bytes, more than " + std::to_string(limits::kKeyBytesMax));
    }
    wanted.push_back({digest.value(), bytes, pin});
  }
  return wanted;
}

rpc::Task<void> StageLoader::fetch(SessionNow session, std::vector<ShardFetcher::Wanted> wanted) {
  std::vector<ModelCache::Hold> holds;
  for (const ShardFetcher::Wanted& shard : wanted) holds.emplace_back(cache_, shard.digest);
  for (const ShardFetcher::Wanted& shard : wanted) {
    kj::Maybe<rpc::HostSession::Client> now = session();
    kj::Promise<void> fetched = nullptr;
    KJ_IF_MAYBE (from, now) {
      fetched = fetcher_.fetch(kj::mv(*from), shard);
    } else {
      rpc::throw_error({ErrorCode::kUnavailable, "this host is not logged in"});
    }
    co_await kj::mv(fetched);
  }
}

rpc::Task<rpc::Stage::Client> StageLoader::load(rpc::Worker::Client worker,
                                                rpc::StageSpec::Reader spec,
                                                std::vector<ShardFetcher::Wanted> wanted) {
  auto open = worker.openStageRequest();
  open.setSpec(spec);
  auto opened = co_await open.send();
  rpc::StageLoader::Client loader = opened.getLoader();
  for (uint32_t index = 0; index < wanted.size(); ++index) {
    const InputFile file = rpc::require(cache_.read(wanted[index].digest));
    uint64_t done = 0;
    while (done < wanted[index].size) {
      const auto size = static_cast<size_t>(
          std::min<uint64_t>(limits::kChunkBytesMax, wanted[index].size - done));
      auto request = loader.writeRequest(capnp::MessageSize{size / sizeof(capnp::word) + 16, 0});
      request.setShard(index);
      auto bytes = request.initBytes(static_cast<uint32_t>(size));
      const size_t count = rpc::require(
          file.read_at(done, std::span(reinterpret_cast<std::byte*>(bytes.begin()), bytes.size())));
      if (count != size) {
        cache_.discard(wanted[index].digest);
        rpc::throw_error({ErrorCode::kCorrupt, "shard " + wanted[index].digest.hex() +
                                                   " was cut short on disk by another program"});
      }
      done += size;
      co_await request.send();  // Resolves when the worker can take more.
    }
  }
  auto finished = co_await loader.finishRequest().send();
  co_return finished.getStage();
}

rpc::Task<rpc::Stage::Client> StageLoader::open(SessionNow session, rpc::Worker::Client worker,
                                                rpc::StageSpec::Reader spec,
                                                std::vector<ShardFetcher::Wanted> wanted,
                                                std::function<void()> loading) {
  for (int attempt = 0;; ++attempt) {
    kj::Promise<void> fetched = fetch(session, wanted);
    co_await kj::mv(fetched);
    loading();
    kj::Maybe<rpc::Stage::Client> stage;
    Error error;
    try {
      kj::Promise<rpc::Stage::Client> loaded = load(worker, spec, wanted);
      stage = co_await kj::mv(loaded);
    } catch (const kj::Exception& exception) {
      // A shard that was damaged after it was proved is found by the worker: fetch it anew, once.
      error = rpc::error_of(exception);
      if (error.code != ErrorCode::kCorrupt || attempt > 0) throw;
    }
    KJ_IF_MAYBE (opened, stage) {
      co_return kj::mv(*opened);
    }
    log_warning("loader", "load_again", {{"cause", error}});
    for (const ShardFetcher::Wanted& shard : wanted) cache_.doubt(shard.digest);
  }
}

}  // namespace shoal::client
