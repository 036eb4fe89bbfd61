#pragma once
// What a unit's output is checked against, and its canonical bytes: what results are compared by,
// stored as and read back from.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "schema/work.capnp.h"

namespace shoal {

enum class UnitKind : uint8_t { kGenerate, kScore, kEmbed };
std::string_view unit_kind_name(UnitKind kind);  // "generate", "score", "embed"

// What the output of one item must look like.
struct ItemShape {
  // generate: at least one token and at most so many, fewer only when the last one is in `stop`,
  // and no other one is. score, embed: exactly so many numbers.
  uint32_t count = 0;
  std::span<const int32_t> stop;
};

// The output of one item, as it is kept.
struct ItemValues {
  std::vector<int32_t> tokens;  // generate
  std::vector<float> numbers;   // score, embed
};

// Every number little-endian:
//
//   "shoal-unit-1"  u8 kind  u32 number of items
//   for each item:  u32 count, then count times i32 (generate) or the bits of an f32 (score, embed)
//
// So equal outputs have equal bytes, and different ones never. Only finite numbers come here, and
// no negative zero: it is written as 0.
//
// kInvalid, naming the item, when the output is not as `items` say. Tokens are below `vocabulary`.
Result<ByteVector> unit_output_bytes(rpc::UnitOutput::Reader output, UnitKind kind,
                                     std::span<const ItemShape> items, int64_t vocabulary);

// Reads them back. kCorrupt when they are damaged.
Result<std::vector<ItemValues>> read_unit_output(ByteSpan bytes, UnitKind kind);

}  // namespace shoal
