#include "client/stage_paths.h"

#include <utility>

#include "base/log.h"
#include "schema/direct.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr uint32_t kExponentBits = 0x7f800000;  // All set: an infinity or no number.

bool is_finite(ByteSpan hidden) {
  for (size_t at = 0; at < hidden.size(); at += sizeof(float)) {
    if ((load_le<uint32_t>(hidden.data() + at) & kExponentBits) == kExponentBits) return false;
  }
  return true;
}

// What the neighbour has of a stage's inputs: as long as it holds this, rows may come.
class InletServer final : public rpc::PathInlet::Server {
 public:
  explicit InletServer(kj::Own<RowInlet> inlet) : inlet_(kj::mv(inlet)) {}
  ~InletServer() noexcept(false) { inlet_->end("the neighbour has gone"); }

  kj::Promise<void> put(PutContext context) override {
    const auto params = context.getParams();
    inlet_->put(params.getFirst(), rpc::bytes_of(params.getHidden()));
    return kj::READY_NOW;
  }

 private:
  kj::Own<RowInlet> inlet_;
};

[[noreturn]] void no_path(const std::string& why) {
  rpc::throw_error({ErrorCode::kUnavailable, why});
}

}  // namespace

void RowInlet::put(uint32_t first, ByteSpan hidden) {
  const char* wrong = nullptr;
  if (hidden.empty() || hidden.size() % row_bytes_ != 0 || hidden.size() > row_bytes_ * rows_max_) {
    wrong = "the neighbour sent no block of rows";
  } else if (blocks_.size() >= kBlocksMax) {
    wrong = "the neighbour sent blocks that no step has asked for yet";
  } else if (!is_finite(hidden)) {
    wrong = "the neighbour sent rows that are not finite";
  }
  if (wrong != nullptr) end(wrong);
  if (!ended_.empty()) no_path(ended_);
  blocks_.push_back({first, to_vector(hidden)});
  give();
}

kj::Promise<ByteVector> RowInlet::take(uint32_t first, uint32_t rows) {
  // What has come is good, whatever came after it.
  if (blocks_.empty() && !ended_.empty()) no_path(ended_);
  auto pair = kj::newPromiseAndFulfiller<ByteVector>();
  takers_.push_back({first, rows, kj::mv(pair.fulfiller)});
  give();
  return kj::mv(pair.promise);
}

// Both come in the order of their positions.
void RowInlet::give() {
  if (blocks_.empty() || takers_.empty()) return;
  Block& block = blocks_.front();
  Taker& taker = takers_.front();
  if (block.first != taker.first || block.hidden.size() != taker.rows * row_bytes_) {
    blocks_.clear();
    end("the neighbour sent another block than the one that is due");
    return;
  }
  taker.fulfiller->fulfill(std::move(block.hidden));
  blocks_.pop_front();
  takers_.pop_front();
}

void RowInlet::end(const std::string& why) {
  if (ended_.empty()) ended_ = why;
  for (Taker& taker : std::exchange(takers_, {})) {
    taker.fulfiller->reject(kj::Exception(kj::Exception::Type::OVERLOADED, __FILE__, __LINE__,
                                          kj::heapString(ended_.c_str())));
  }
}

void StagePaths::end() {
  ended_ = true;
  inputs_ = {};
  outputs_ = {};
  if (inlet_.get() != nullptr) inlet_->end("the stage is over");
  inlet_ = nullptr;
  forget(0);
  kept_ = {};
  kept_first_.reset();
}

kj::Maybe<rpc::PathInlet::Client> StagePaths::begin(rpc::PathEnd::Reader end) {
  if (ended_) no_path("the stage is over");
  if (end.getToken().size() != limits::kPathTokenBytes) {
    rpc::throw_error({ErrorCode::kInvalid, "a path's token has another size"});
  }
  Side& side = this->side(end.getSide());
  side.expectation = nullptr;
  side.meeting = nullptr;
  side.begun += 1;
  if (end.getSide() == rpc::PathEnd::Side::OUTPUTS) {
    forget(0);
    kept_first_.reset();
    return nullptr;
  }
  if (inlet_.get() != nullptr) inlet_->end("there is another path");
  inlet_ = kj::refcounted<RowInlet>(row_bytes_, rows_max_);
  return rpc::PathInlet::Client(kj::heap<InletServer>(kj::addRef(*inlet_)));
}

void StagePaths::expect(rpc::PathEnd::Reader end) {
  if (door_.port() == 0) no_path("nobody may dial this host");
  kj::Maybe<rpc::PathInlet::Client> own = begin(end);
  Side& side = this->side(end.getSide());
  const size_t bytes_max = own == nullptr ? 0 : row_bytes_ * rows_max_;
  side.expectation =
      door_.expect(rpc::bytes_of(end.getToken()), kj::mv(own), bytes_max,
                   [&side](PathDoor::Meeting meeting) { side.meeting = kj::mv(meeting); });
}

rpc::Task<uint32_t> StagePaths::dial(rpc::DirectStage::DialParams::Reader params) {
  if (!door_.dials()) no_path("this host does not dial its neighbours");
  rpc::AttachUrl url;
  url.host = rpc::text_of(params.getAddress(), limits::kAddressBytesMax, "address");
  url.port = params.getPort();
  url.pin = rpc::text_of(params.getPin(), limits::kKeyBytesMax, "pin");
  kj::Maybe<rpc::PathInlet::Client> own = begin(params.getEnd());
  Side& side = this->side(params.getEnd().getSide());
  const uint64_t begun = side.begun;
  ByteVector token = to_vector(rpc::bytes_of(params.getEnd().getToken()));
  rpc::Task<PathDoor::Meeting> dialling = door_.dial(std::move(url), std::move(token), kj::mv(own));
  PathDoor::Meeting meeting = co_await kj::mv(dialling);
  if (ended_ || side.begun != begun) no_path("there is another path");
  const uint32_t micros = meeting.round_trip_micros;
  side.meeting = kj::mv(meeting);
  co_return uint32_t{micros};
}

kj::Promise<ByteVector> StagePaths::take(uint32_t first, uint32_t rows) {
  if (inlet_.get() == nullptr) no_path("there is no path to this stage");
  return inlet_->take(first, rows).attach(kj::addRef(*inlet_));
}

Result<void> StagePaths::may_pass_on(uint32_t rows) const {
  const auto no = [](const char* why) { return Error{ErrorCode::kUnavailable, why}; };
  if (outputs_.meeting == nullptr) return no("there is no path from this stage");
  if (rows > rows_max_) return no("a step has too many rows");
  if (door_.kept_bytes() + static_cast<int64_t>(rows * row_bytes_) > kKeptBytesMax) {
    return no("this host keeps as much as it may already");
  }
  return {};
}

Result<Digest> StagePaths::pass_on(uint32_t first, ByteSpan hidden) {
  // A neighbour that answers for nothing is not sent more and more.
  if (unheard_ >= kUnheardMax) outputs_.meeting = nullptr;
  SHOAL_TRY(may_pass_on(static_cast<uint32_t>(hidden.size() / row_bytes_)));
  if (!kept_first_) kept_first_ = first;
  if (first < *kept_first_ || first - *kept_first_ > kept_.size() / row_bytes_) {
    return Error{ErrorCode::kUnavailable, "rows in between were not passed on"};
  }
  // Rows that are given again take the place of the former ones.
  forget((first - *kept_first_) * row_bytes_);
  kept_.insert(kept_.end(), hidden.begin(), hidden.end());
  door_.kept_bytes() += static_cast<int64_t>(hidden.size());
  KJ_IF_MAYBE (meeting, outputs_.meeting) {
    KJ_IF_MAYBE (inlet, meeting->inlet) {
      auto request = inlet->putRequest(capnp::MessageSize{hidden.size() / 8 + 32, 0});
      request.setFirst(first);
      request.setHidden(rpc::kj_bytes(hidden));
      ++unheard_;
      sending_.add(request.send().ignoreResult().attach(kj::defer([this] { --unheard_; })));
    }
  }
  return digest_of(hidden);
}

Result<ByteSpan> StagePaths::outputs(uint32_t first, uint32_t rows) const {
  const size_t have = kept_.size() / row_bytes_;
  if (!kept_first_ || first < *kept_first_ || first - *kept_first_ > have ||
      rows > have - (first - *kept_first_)) {
    return Error{ErrorCode::kNotFound, "this stage did not pass those rows on"};
  }
  return ByteSpan(kept_).subspan((first - *kept_first_) * row_bytes_, rows * row_bytes_);
}

void StagePaths::forget(size_t bytes_left) {
  if (bytes_left >= kept_.size()) return;
  door_.kept_bytes() -= static_cast<int64_t>(kept_.size() - bytes_left);
  kept_.resize(bytes_left);
}

// The neighbour tells the coordinator what it lacks.
void StagePaths::taskFailed(kj::Exception&& exception) {
  log_debug("paths", "not_sent", {{"cause", exception.getDescription().cStr()}});
}

}  // namespace shoal::client
