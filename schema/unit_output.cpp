#include "schema/unit_output.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "schema/limits.h"

namespace shoal {
namespace {

constexpr std::string_view kPurpose = "shoal-unit-1";

Error wrong(size_t item, std::string_view what) {
  return {ErrorCode::kInvalid, "output of item " + std::to_string(item) + ": " + std::string(what)};
}

Result<void> put_tokens(ByteWriter& to, capnp::List<int32_t>::Reader tokens, size_t item,
                        const ItemShape& shape, int64_t vocabulary) {
  if (tokens.size() == 0 || tokens.size() > shape.count)
    return wrong(item, "it has another number of tokens than were asked for");
  to.u32(tokens.size());
  for (uint i = 0; i < tokens.size(); ++i) {
    const int32_t token = tokens[i];
    if (token < 0 || token >= vocabulary)
      return wrong(item, "it has a token beyond the vocabulary");
    const bool stops = std::ranges::find(shape.stop, token) != shape.stop.end();
    const bool last = i + 1 == tokens.size();
    if (stops && !last) return wrong(item, "it goes on after a token that ends it");
    if (last && !stops && tokens.size() < shape.count)
      return wrong(item, "it ends before a token that ends it");
    to.u32(static_cast<uint32_t>(token));
  }
  return {};
}

Result<void> put_numbers(ByteWriter& to, capnp::List<float>::Reader numbers, size_t item,
                         const ItemShape& shape) {
  if (numbers.size() != shape.count)
    return wrong(item, "it has another number of figures than were asked for");
  to.u32(numbers.size());
  for (const float number : numbers) {
    if (!std::isfinite(number)) return wrong(item, "it has a figure that is no number");
    to.f32(number == 0 ? 0.0f : number);
  }
  return {};
}

}  // namespace

std::string_view unit_kind_name(UnitKind kind) {
  switch (kind) {
    case UnitKind::kGenerate: return "generate";
    case UnitKind::kScore: return "score";
    case UnitKind::kEmbed: return "embed";
  }
  SHOAL_UNREACHABLE();
}

Result<ByteVector> unit_output_bytes(rpc::UnitOutput::Reader output, UnitKind kind,
                                     std::span<const ItemShape> items, int64_t vocabulary) {
  const auto outputs = output.getItems();
  if (outputs.size() != items.size()) {
    return Error{ErrorCode::kInvalid, "the output has " + std::to_string(outputs.size()) +
                                          " items, the unit " + std::to_string(items.size())};
  }
  ByteWriter to;
  to.text(kPurpose);
  to.u8(static_cast<uint8_t>(kind));
  to.u32(outputs.size());
  for (uint i = 0; i < outputs.size(); ++i) {
    const auto item = outputs[i];
    const auto which = item.which();
    if (kind == UnitKind::kGenerate && which == rpc::ItemOutput::TOKENS) {
      SHOAL_TRY(put_tokens(to, item.getTokens(), i, items[i], vocabulary));
    } else if (kind == UnitKind::kScore && which == rpc::ItemOutput::LOG_LIKELIHOODS) {
      SHOAL_TRY(put_numbers(to, item.getLogLikelihoods(), i, items[i]));
    } else if (kind == UnitKind::kEmbed && which == rpc::ItemOutput::VECTOR) {
      SHOAL_TRY(put_numbers(to, item.getVector(), i, items[i]));
    } else {
      return wrong(i, "it is of another kind than the unit");
    }
  }
  return to.take();
}

Result<std::vector<ItemValues>> read_unit_output(ByteSpan bytes, UnitKind kind) {
  ByteReader from(bytes);
  SHOAL_TRY_ASSIGN(purpose, from.text(kPurpose.size(), "purpose"));
  SHOAL_TRY_ASSIGN(stored_kind, from.u8("kind"));
  SHOAL_TRY_ASSIGN(count, from.u32("items"));
  if (purpose != kPurpose || stored_kind != static_cast<uint8_t>(kind) ||
      count > limits::kItemsPerUnitMax) {
    return Error{ErrorCode::kCorrupt, "a stored result is damaged"};
  }
  std::vector<ItemValues> items(count);
  for (ItemValues& item : items) {
    SHOAL_TRY_ASSIGN(values, from.u32("count"));
    if (values > from.left() / 4) return Error{ErrorCode::kCorrupt, "a stored result is cut short"};
    for (uint32_t i = 0; i < values; ++i) {
      if (kind == UnitKind::kGenerate) {
        SHOAL_TRY_ASSIGN(token, from.u32());
        item.tokens.push_back(static_cast<int32_t>(token));
      } else {
        SHOAL_TRY_ASSIGN(number, from.f32());
        item.numbers.push_back(number);
      }
    }
  }
  if (!from.at_end()) return Error{ErrorCode::kCorrupt, "a stored result is too long"};
  return items;
}

}  // namespace shoal
