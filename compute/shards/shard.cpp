#include "compute/shards/shard.h"

#include <algorithm>
#include <array>
#include <limits>

namespace shoal::compute {
namespace {

constexpr std::string_view kMagic = "SHOALSHD";
constexpr size_t kNameBytesMax = 256;
constexpr uint8_t kDimensionsMax = 4;

uint64_t aligned(uint64_t at) {
  return (at + kShardAlignment - 1) / kShardAlignment * kShardAlignment;
}

// The weights of a graph by name.
std::map<std::string, const Value*> weights_of(const Graph& graph) {
  std::map<std::string, const Value*> result;
  for (const Value& value : graph.values) {
    if (value.kind == ValueKind::kWeight) result.emplace(value.name, &value);
  }
  return result;
}

struct Head {
  ByteVector bytes;    // All before the first weight, padded.
  uint64_t total = 0;  // Of the whole shard.
};

Head head_of(const Fragment& fragment) {
  const std::vector<std::byte> graph = encode(fragment.graph);
  const auto weights = weights_of(fragment.graph);
  SHOAL_CHECK(weights.size() == fragment.weights.size());

  uint64_t head = kMagic.size() + 4 + 4 + 8 + 8 + graph.size();
  for (const auto& [name, value] : weights)
    head += 2 + name.size() + 1 + 1 + 8 * value->shape.size() + 8 + 8;
  head = aligned(head);
  uint64_t total = head;
  for (const auto& [name, bytes] : fragment.weights) total = aligned(total) + bytes.size();

  ByteWriter writer;
  writer.text(kMagic);
  writer.u32(kShardVersion);
  writer.u32(static_cast<uint32_t>(weights.size()));
  writer.u64(total);
  writer.u64(graph.size());
  writer.bytes(graph);
  uint64_t offset = head;
  for (const auto& [name, value] : weights) {
    const auto bytes = fragment.weights.find(name);
    SHOAL_CHECK(bytes != fragment.weights.end());
    writer.u16(static_cast<uint16_t>(name.size()));
    writer.text(name);
    writer.u8(static_cast<uint8_t>(value->dtype));
    writer.u8(static_cast<uint8_t>(value->shape.size()));
    for (const int64_t dimension : value->shape) writer.u64(static_cast<uint64_t>(dimension));
    offset = aligned(offset);
    writer.u64(offset);
    writer.u64(bytes->second.size());
    offset += bytes->second.size();
  }
  while (writer.size() < head) writer.u8(0);
  return {writer.take(), total};
}

Error corrupt(const std::string& what) { return {ErrorCode::kCorrupt, "shard: " + what}; }

Result<void> read_padding(ByteReader& reader, uint64_t count, const std::string& before) {
  SHOAL_TRY_ASSIGN(zeros, reader.bytes(count, "shard: padding before " + before));
  const bool clean =
      std::all_of(zeros.begin(), zeros.end(), [](std::byte b) { return b == std::byte{0}; });
  if (!clean) return corrupt("padding before " + before + ": is not zero");
  return {};
}

// One entry of the weight table, held against the graph.
Result<void> read_weight(ByteReader& reader, ByteSpan bytes,
                         const std::map<std::string, const Value*>& wanted,
                         uint64_t& offset_expected, Fragment& fragment) {
  SHOAL_TRY_ASSIGN(length, reader.u16("shard: weight: name"));
  if (length > kNameBytesMax) return corrupt("weight: name: is too long");
  SHOAL_TRY_ASSIGN(name_read, reader.text(length, "shard: weight: name"));
  const std::string name(name_read);
  const auto value = wanted.find(name);
  // Unknown names may hold any bytes, so they are not repeated.
  if (value == wanted.end()) return corrupt("weight: name: the graph has no such weight");
  const std::string where = "weight " + name;
  SHOAL_TRY_ASSIGN(type, reader.u8("shard: " + where + ": type"));
  SHOAL_TRY_ASSIGN(dimensions, reader.u8("shard: " + where + ": dimensions"));
  if (dimensions > kDimensionsMax) return corrupt(where + ": dimensions: are too many");
  Shape shape;
  for (uint8_t i = 0; i < dimensions; ++i) {
    SHOAL_TRY_ASSIGN(dimension, reader.u64("shard: " + where + ": dimensions"));
    if (dimension > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return corrupt(where + ": dimensions: overflow");
    }
    shape.push_back(static_cast<int64_t>(dimension));
  }
  SHOAL_TRY_ASSIGN(offset, reader.u64("shard: " + where + ": offset"));
  SHOAL_TRY_ASSIGN(size, reader.u64("shard: " + where + ": size"));
  if (type != static_cast<uint8_t>(value->second->dtype))
    return corrupt(where + ": type: is not the graph's");
  if (shape != value->second->shape) return corrupt(where + ": dimensions: are not the graph's");
  auto bytes_wanted = byte_size(value->second->dtype, shape);
  if (!bytes_wanted.ok())
    return with_context(bytes_wanted.error(), "shard: " + where + ": dimensions");
  if (size != static_cast<uint64_t>(bytes_wanted.value())) {
    return corrupt(where + ": size: " + std::to_string(size) + " is not the " +
                   std::to_string(bytes_wanted.value()) + " of its type and dimensions");
  }
  if (offset_expected != 0 && offset != aligned(offset_expected)) {
    return corrupt(where + ": offset: is not where the weight before it ends");
  }
  if (offset % kShardAlignment != 0) return corrupt(where + ": offset: is no multiple of 64");
  if (offset > bytes.size() || size > bytes.size() - offset) {
    return corrupt(where + ": offset: its bytes pass the end");
  }
  if (!fragment.weights.emplace(name, bytes.subspan(offset, size)).second) {
    return corrupt(where + ": stands twice");
  }
  offset_expected = offset + size;
  return {};
}

}  // namespace

uint64_t shard_size(const Fragment& fragment) { return head_of(fragment).total; }

Result<void> write_shard(const Fragment& fragment, const ByteSink& sink) {
  static constexpr std::array<std::byte, kShardAlignment> kZeros{};
  const Head head = head_of(fragment);
  SHOAL_TRY(sink(head.bytes));
  uint64_t at = head.bytes.size();
  for (const auto& [name, bytes] : fragment.weights) {
    SHOAL_TRY(sink(ByteSpan(kZeros).first(aligned(at) - at)));
    SHOAL_TRY(sink(bytes));
    at = aligned(at) + bytes.size();
  }
  SHOAL_CHECK(at == head.total);
  return {};
}

Result<Fragment> open_shard(ByteSpan bytes) {
  ByteReader reader(bytes);
  auto magic = reader.text(kMagic.size(), "shard: magic");
  if (!magic.ok() || magic.value() != kMagic) return corrupt("magic: is not a shard's");
  SHOAL_TRY_ASSIGN(version, reader.u32("shard: version"));
  if (version != kShardVersion) {
    return Error{ErrorCode::kUnsupported, "shard: version: " + std::to_string(version) +
                                              " is not " + std::to_string(kShardVersion)};
  }
  SHOAL_TRY_ASSIGN(weights, reader.u32("shard: weights"));
  if (weights > kShardWeightsMax)
    return corrupt("weights: " + std::to_string(weights) + " are too many");
  SHOAL_TRY_ASSIGN(total, reader.u64("shard: size"));
  if (total != bytes.size()) {
    return corrupt("size: says " + std::to_string(total) + " bytes, but there are " +
                   std::to_string(bytes.size()));
  }
  SHOAL_TRY_ASSIGN(graph_size, reader.u64("shard: graph: size"));
  SHOAL_TRY_ASSIGN(graph_bytes, reader.bytes(graph_size, "shard: graph"));
  auto graph = decode(graph_bytes);
  if (!graph.ok()) return with_context(graph.error(), "shard: graph");

  Fragment fragment{std::move(graph).value(), {}};
  const auto wanted = weights_of(fragment.graph);
  if (wanted.size() != weights) {
    return corrupt("weights: " + std::to_string(weights) + " are not the graph's " +
                   std::to_string(wanted.size()));
  }
  uint64_t data_end = 0;  // Of the weights read so far; 0 before the first.
  uint64_t data_begin = 0;
  for (uint32_t i = 0; i < weights; ++i) {
    SHOAL_TRY(read_weight(reader, bytes, wanted, data_end, fragment));
    if (i == 0)
      data_begin = static_cast<uint64_t>(fragment.weights.begin()->second.data() - bytes.data());
  }
  const uint64_t table_end = reader.position();
  if (weights == 0) {
    data_begin = data_end = aligned(table_end);
  }
  if (data_begin != aligned(table_end))
    return corrupt("offset: the first weight does not follow the table");
  if (data_end != bytes.size()) return corrupt("size: bytes follow the last weight");
  SHOAL_TRY(read_padding(reader, data_begin - table_end, "the weights"));
  // The gaps between weights, which keep the order of the table.
  ByteReader gaps(bytes);
  uint64_t at = data_begin;
  SHOAL_TRY(gaps.skip(at));
  for (const auto& [name, weight] : fragment.weights) {
    const auto begin = static_cast<uint64_t>(weight.data() - bytes.data());
    if (begin < at) return corrupt("weight " + name + ": does not stand in the order of names");
    SHOAL_TRY(read_padding(gaps, begin - at, "weight " + name));
    SHOAL_TRY(gaps.skip(weight.size()));
    at = begin + weight.size();
  }
  return fragment;
}

PlainShard& PlainShard::operator=(PlainShard&& other) noexcept {
  wipe(bytes_);
  bytes_ = std::move(other.bytes_);
  fragment_ = std::move(other.fragment_);
  return *this;
}

PlainShard::~PlainShard() { wipe(bytes_); }

struct ShardOpener::State {
  State(const SecretBytes& key, const Digest& expected, uint64_t sealed)
      : digest(expected),
        sealed_bytes(sealed),
        reader(key, [this](ByteSpan piece) { return take(piece); }) {
    // Reserved once: growing would leave unwiped copies of plain bytes behind.
    plain.reserve(sealed);
  }
  ~State() { wipe(plain); }

  Result<void> take(ByteSpan piece) {
    SHOAL_CHECK(piece.size() <= plain.capacity() - plain.size());  // Plain is shorter than sealed.
    plain.insert(plain.end(), piece.begin(), piece.end());
    return {};
  }
  Error error(const std::string& what) const {
    return {ErrorCode::kCorrupt, "shard " + digest.hex() + ": " + what};
  }

  const Digest digest;
  const uint64_t sealed_bytes;
  uint64_t fed = 0;
  DigestBuilder digest_builder;
  ByteVector plain;
  SealedReader reader;
};

ShardOpener::ShardOpener(const SecretBytes& key, const Digest& digest, uint64_t sealed_bytes)
    : state_(std::make_unique<State>(key, digest, sealed_bytes)) {}
ShardOpener::ShardOpener(ShardOpener&&) noexcept = default;
ShardOpener::~ShardOpener() = default;

uint64_t ShardOpener::fed() const { return state_->fed; }

Result<void> ShardOpener::feed(ByteSpan sealed) {
  if (sealed.size() > state_->sealed_bytes - state_->fed) {
    return state_->error("has more than its " + std::to_string(state_->sealed_bytes) + " bytes");
  }
  state_->fed += sealed.size();
  state_->digest_builder.update(sealed);
  if (auto fed = state_->reader.feed(sealed); !fed.ok()) {
    return with_context(fed.error(), "shard " + state_->digest.hex());
  }
  return {};
}

Result<PlainShard> ShardOpener::finish() {
  if (state_->fed != state_->sealed_bytes) {
    return state_->error("ended after " + std::to_string(state_->fed) + " of " +
                         std::to_string(state_->sealed_bytes) + " bytes");
  }
  if (state_->digest_builder.finish() != state_->digest)
    return state_->error("its bytes have another digest");
  if (auto finished = state_->reader.finish(); !finished.ok()) {
    return with_context(finished.error(), "shard " + state_->digest.hex());
  }
  PlainShard shard;
  shard.bytes_ = std::move(state_->plain);
  auto fragment = open_shard(shard.bytes_);
  if (!fragment.ok()) return with_context(fragment.error(), "shard " + state_->digest.hex());
  shard.fragment_ = std::move(fragment).value();
  return shard;
}

}  // namespace shoal::compute
