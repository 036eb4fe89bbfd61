#include "client/shard_fetcher.h"

#include <deque>

#include "base/log.h"
#include "schema/limits.h"
#include "schema/require.h"
#include "schema/task.h"

namespace shoal::client {
namespace {

constexpr size_t kChunksInFlight = 4;

using ReadResponse = capnp::Response<rpc::HostSession::ReadShardResults>;

kj::Promise<ReadResponse> ask(rpc::HostSession::Client& session, const Digest& digest,
                              uint64_t offset, uint32_t length) {
  auto request = session.readShardRequest();
  request.setDigest(rpc::kj_bytes(digest.bytes));
  request.setOffset(offset);
  request.setLength(length);
  return request.send();
}

}  // namespace

// Has the shard to itself until its end, which is also that of a cancelled fetch.
class ShardFetcher::Turn {
 public:
  Turn(ShardFetcher& fetcher, const Wanted& wanted) : fetcher_(fetcher), digest_(wanted.digest) {
    Busy& busy = fetcher_.busy_[digest_];
    busy.total = wanted.size;
    busy.coordinator = wanted.coordinator;
  }
  ~Turn() {
    auto node = fetcher_.busy_.extract(digest_);
    for (auto& fulfiller : node.mapped().waiting) fulfiller->fulfill();
  }
  KJ_DISALLOW_COPY(Turn);

 private:
  ShardFetcher& fetcher_;
  Digest digest_;
};

// A turn of the loop in between: only a timer makes kj look at its sockets too.
kj::Promise<void> ShardFetcher::breathe() { return timer_.afterDelay(0 * kj::NANOSECONDS); }

// False: what arrived was not the shard, and nothing of it was kept.
rpc::Task<bool> ShardFetcher::download(rpc::HostSession::Client session, Wanted wanted) {
  ModelCache::Download download = rpc::require(cache_.download(wanted.digest, wanted.size));
  while (!rpc::require(download.catch_up())) co_await breathe();
  Busy& busy = busy_.at(wanted.digest);
  busy.done = busy.first = download.have();
  busy.began = clock_.now_monotonic();

  struct Chunk {
    uint32_t length;
    kj::Promise<ReadResponse> answer;
  };
  std::deque<Chunk> in_flight;
  uint64_t asked = download.have();
  while (download.have() < wanted.size) {
    while (in_flight.size() < kChunksInFlight && asked < wanted.size) {
      const auto length =
          static_cast<uint32_t>(std::min<uint64_t>(limits::kChunkBytesMax, wanted.size - asked));
      const Millis wait = limit_.take(Bytes{length}, clock_.now_monotonic());
      if (wait.count > 0) co_await timer_.afterDelay(wait.count * kj::MILLISECONDS);
      require_allowed();
      in_flight.push_back({length, ask(session, wanted.digest, asked, length)});
      asked += length;
    }
    Chunk chunk = kj::mv(in_flight.front());
    in_flight.pop_front();
    const ReadResponse answer = co_await kj::mv(chunk.answer);
    if (answer.getBytes().size() != chunk.length) {
      rpc::throw_error({ErrorCode::kCorrupt, "the coordinator sent " +
                                                 std::to_string(answer.getBytes().size()) +
                                                 " instead of " + std::to_string(chunk.length) +
                                                 " bytes of shard " + wanted.digest.hex()});
    }
    rpc::require(download.append(rpc::bytes_of(answer.getBytes())));
    busy.done = download.have();
    received_ += Bytes{chunk.length};
    require_allowed();
  }
  const Result<void> finished = download.finish();
  if (finished.ok()) co_return true;
  if (finished.error().code != ErrorCode::kCorrupt) rpc::throw_error(finished.error());
  log_warning("fetch", "wrong_content", {{"shard", wanted.digest.hex()}});
  co_return false;
}

// False: it was damaged, and is gone.
rpc::Task<bool> ShardFetcher::prove(Digest digest) {
  Result<ModelCache::Proof> proof = cache_.prove(digest);
  while (proof.ok()) {
    const Result<bool> step = proof.value().step();
    if (step.ok() && step.value()) co_return true;
    if (!step.ok()) proof = step.error();
    co_await breathe();
  }
  if (proof.error().code != ErrorCode::kCorrupt) rpc::throw_error(proof.error());
  co_return false;
}

rpc::Task<void> ShardFetcher::fetch(rpc::HostSession::Client session, Wanted wanted) {
  while (true) {
    const auto busy = busy_.find(wanted.digest);
    if (busy == busy_.end()) break;
    auto pair = kj::newPromiseAndFulfiller<void>();
    busy->second.waiting.push_back(kj::mv(pair.fulfiller));
    co_await kj::mv(pair.promise);
  }
  if (cache_.proved(wanted.digest)) co_return;
  const Turn turn(*this, wanted);

  if (cache_.has(wanted.digest)) {
    if (co_await prove(wanted.digest)) co_return;
  }
  // A part that an earlier crash damaged shows at its end only: then once more, from the start.
  for (int attempt = 0; attempt < 2; ++attempt) {
    kj::Promise<bool> arrived = download(session, wanted);
    if (co_await kj::mv(arrived)) {
      log_info("fetch", "fetched", {{"shard", wanted.digest.hex()}, {"bytes", wanted.size}});
      co_return;
    }
  }
  rpc::throw_error({ErrorCode::kCorrupt, "the coordinator's copy of shard " + wanted.digest.hex() +
                                             " is damaged: it arrived twice with another content; "
                                             "the model must be published again"});
}

void ShardFetcher::require_allowed() const {
  if (!forbidden_.empty()) rpc::throw_error({ErrorCode::kUnavailable, forbidden_});
}

std::vector<ShardFetcher::Transfer> ShardFetcher::transfers() const {
  std::vector<Transfer> all;
  for (const auto& [digest, busy] : busy_) {
    const int64_t passed_ms = std::max<int64_t>((clock_.now_monotonic() - busy.began).count, 1);
    const double rate =
        static_cast<double>(busy.done - busy.first) * 1000.0 / static_cast<double>(passed_ms);
    all.push_back({digest, busy.done, busy.total, rate, busy.coordinator});
  }
  return all;
}

}  // namespace shoal::client
