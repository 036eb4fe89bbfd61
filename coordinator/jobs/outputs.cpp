#include "coordinator/jobs/outputs.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr size_t kWriteBytes = size_t{1} << 20;
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

Result<void> read_output_file(const std::filesystem::path& path,
                              const std::function<Result<void>(const FormerOutput&)>& take) {
  const Error damaged{ErrorCode::kCorrupt, path.string() + ": a task's output is damaged"};
  std::string rest;
  Result<void> taken;
  const auto take_line = [&](std::string_view line) -> Result<void> {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("id")) return damaged;
    FormerOutput former;
    former.id = json["id"].dump(-1, ' ', false, Json::error_handler_t::replace);
    if (const auto text = json.find("text"); text != json.end() && text->is_string())
      former.text = text->get<std::string>();
    return take(former);
  };
  SHOAL_TRY(read_file_in_pieces(path, [&](ByteSpan piece) {
    rest += as_text(piece);
    size_t from = 0;
    for (size_t end; taken.ok() && (end = rest.find('\n', from)) != std::string::npos;
         from = end + 1) {
      taken = take_line(std::string_view(rest).substr(from, end - from));
    }
    rest.erase(0, from);
    if (rest.size() > kLineBytesMax) taken = damaged;
  }));
  SHOAL_TRY(taken);
  return rest.empty() ? Result<void>() : Result<void>(damaged);
}

Result<OutputWriter> OutputWriter::begin(const std::filesystem::path& path) {
  std::error_code ignored;  // A stray one of a former run.
  std::filesystem::remove(path, ignored);
  SHOAL_TRY_ASSIGN(file, AppendFile::open(path));
  return OutputWriter(path, std::move(file));
}

OutputWriter::OutputWriter(OutputWriter&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      file_(std::move(other.file_)),
      digest_(other.digest_),
      waiting_(std::move(other.waiting_)),
      lines_(other.lines_) {}

OutputWriter::~OutputWriter() {
  std::error_code ignored;  // The next start removes it.
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

Result<void> OutputWriter::flush() {
  SHOAL_TRY(file_.append(as_bytes(waiting_)));
  digest_.update(as_bytes(waiting_));
  waiting_.clear();
  return {};
}

Result<void> OutputWriter::add(std::string_view line) {
  waiting_ += line;
  lines_ += 1;
  return waiting_.size() >= kWriteBytes ? flush() : Result<void>();
}

Result<Digest> OutputWriter::finish() {
  SHOAL_TRY(flush());
  const Digest digest = digest_.finish();
  SHOAL_TRY(file_.sync_and_rename(path_.parent_path() / (digest.hex() + ".jsonl")));
  path_.clear();
  return digest;
}

Result<void> OutputWriter::leave() {
  SHOAL_TRY(flush());
  path_.clear();
  return {};
}

}  // namespace shoal
