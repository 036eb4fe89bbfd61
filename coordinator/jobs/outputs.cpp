#include "coordinator/jobs/outputs.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kLineBytesMax = size_t{64} << 20;

// The shortest text that reads back as the same number.
void put_number(std::string& out, float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  out.append(text, end.ptr);
}
void put_number(std::string& out, double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  out.append(text, end.ptr);
}

template <class T>
void put_list(std::string& out, const std::vector<T>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    if constexpr (std::is_same_v<T, float>) {
      put_number(out, values[i]);
    } else {
      out += std::to_string(values[i]);
    }
  }
  out += ']';
}

std::string json_text(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string error_line(const WorkItem& item, const std::string& why) {
  return "{\"id\":" + item.id + ",\"error\":" + json_text(why) + "}\n";
}

}  // namespace

UnitKind unit_kind(TaskKind kind) {
  switch (kind) {
    case TaskKind::kGenerate: return UnitKind::kGenerate;
    case TaskKind::kScore: return UnitKind::kScore;
    case TaskKind::kEmbed: return UnitKind::kEmbed;
  }
  SHOAL_UNREACHABLE();
}

std::string output_line(const WorkItem& item, const ItemValues& values, TaskKind kind,
                        const LiveModel& model, std::span<const int32_t> stop) {
  if (item.missing) return error_line(item, "the item that it is made from was quarantined");
  std::string out = "{\"id\":" + item.id;
  if (kind == TaskKind::kGenerate) {
    // A token that ends a text is none of it.
    const bool stopped =
        !values.tokens.empty() && std::ranges::find(stop, values.tokens.back()) != stop.end();
    Detokenizer detokenizer(model.tokenizer, Detokenizer::Begin::kContinuation);
    std::string text;
    for (size_t i = 0; i + (stopped ? 1 : 0) < values.tokens.size(); ++i)
      text += detokenizer.push(values.tokens[i]);
    text += detokenizer.finish();
    out += ",\"text\":" + json_text(text) + ",\"tokens\":";
    put_list(out, values.tokens);
    out += stopped ? ",\"finish_reason\":\"stop\"" : ",\"finish_reason\":\"length\"";
    out += ",\"seed\":" + std::to_string(item.sampling.seed);
  } else if (kind == TaskKind::kScore) {
    out += ",\"log_likelihoods\":";
    put_list(out, values.numbers);
    double sum = 0;
    for (const float number : values.numbers) sum += number;
    out += ",\"sum\":";
    put_number(out, sum);
  } else {
    out += ",\"vector\":";
    put_list(out, values.numbers);
  }
  return out + "}\n";
}

std::string quarantined_line(const WorkItem& item) {
  return error_line(item, item.missing ? "the item that it is made from was quarantined"
                                       : "it failed on every host that tried");
}

Result<OutputReader> OutputReader::open(const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(file, InputFile::open(path));
  return OutputReader(std::move(file));
}

Result<std::optional<FormerOutput>> OutputReader::next() {
  const Error damaged{ErrorCode::kCorrupt, "a task's output is damaged on the disk"};
  size_t end = read_.find('\n', taken_);
  while (end == std::string::npos) {
    read_.erase(0, std::exchange(taken_, 0));
    if (offset_ == file_.size()) {
      return read_.empty() ? Result<std::optional<FormerOutput>>(std::nullopt) : damaged;
    }
    if (read_.size() > kLineBytesMax) return damaged;
    ByteVector piece(kReadBytes);
    SHOAL_TRY_ASSIGN(count, file_.read_at(offset_, piece));
    if (count == 0) return damaged;
    offset_ += count;
    const size_t from = read_.size();
    read_ += as_text(ByteSpan(piece).first(count));
    end = read_.find('\n', from);
  }
  const std::string_view line = std::string_view(read_).substr(taken_, end - taken_);
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  taken_ = end + 1;
  if (!json.is_object() || !json.contains("id")) return damaged;
  FormerOutput former;
  former.id = json["id"].dump(-1, ' ', false, Json::error_handler_t::replace);
  if (const auto text = json.find("text"); text != json.end() && text->is_string())
    former.text = text->get<std::string>();
  return std::optional<FormerOutput>(std::move(former));
}

Result<OutputWriter> OutputWriter::begin(const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(file, DigestFile::begin(path));
  return OutputWriter(std::move(file));
}

Result<void> OutputWriter::add(std::string_view line) {
  lines_ += 1;
  return file_.add(as_bytes(line));
}

}  // namespace shoal
