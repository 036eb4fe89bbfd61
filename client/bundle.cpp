#include "client/bundle.h"

#include <capnp/message.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "base/text.h"
#include "client/agent.h"
#include "client/records/levels.h"

namespace shoal::client {
namespace {

constexpr size_t kLogLines = 2'000, kSpans = 500;
constexpr size_t kSliceBytes = 4'096;  // Some milliseconds.

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Whole words only: a machine called "a" must not eat every letter a.
void replace_word(std::string& text, const std::string& word, std::string_view by) {
  if (word.empty()) return;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_word(text[at - 1]) || !is_word(word.front());
    const bool ends = end == text.size() || !is_word(text[end]) || !is_word(word.back());
    if (begins && ends) {
      text.replace(at, word.size(), by);
      at += by.size();
    } else {
      at = end;
    }
  }
}

std::string value_text(const SettingValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return std::to_string(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return "\"" + *text + "\"";
  std::string list;
  for (const std::string& text : std::get<std::vector<std::string>>(value)) list += " " + text;
  return "[" + list + " ]";
}

// What tells of the owner rather than of the fault.
bool is_private(std::string_view key) {
  static constexpr std::string_view kKeys[] = {"cache.folder",
                                               "coordinators",
                                               "remote.listen",
                                               "rules.exclusive_programs",
                                               "rules.exclusive_programs_gpu",
                                               "sensors.program",
                                               "worker.program"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

// The code and the figures: names of programs, as in "film X keeps the screen on", stay here.
std::string message_text(const Message& message) {
  std::string text = message.code.empty() ? "-" : message.code;
  for (const MessageParameter& parameter : message.parameters) {
    text += std::holds_alternative<std::string>(parameter) ? " <text>" : " " + english(parameter);
  }
  return text;
}

std::string verdict_text(const Verdict& verdict) {
  static constexpr const char* kNames[] = {"working", "waiting", "paused", "attention", "offline"};
  return std::string(kNames[static_cast<size_t>(verdict.activity)]) + " " +
         message_text(verdict.why) + (verdict.rule.empty() ? "" : " by " + verdict.rule);
}

}  // namespace

std::string redact(std::string_view from, const std::vector<std::string>& words) {
  std::string text(from);
  std::vector<std::string> longest_first = words;
  std::ranges::sort(longest_first, std::greater<>{}, &std::string::size);
  static const std::regex kUrl(R"([A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+)");
  text = std::regex_replace(text, kUrl, "<url>");
  for (const std::string& word : longest_first) {
    replace_word(text, word, word.find('/') != std::string::npos ? "<folder>" : "<name>");
  }
  static const std::regex kHome(R"(/(home|root|Users)(/[^\s"':,;]*)?)");
  static const std::regex kIpv4(R"(\b\d{1,3}(\.\d{1,3}){3}\b(:\d+)?)");
  static const std::regex kIpv6(R"(\[?\b[0-9A-Fa-f]{1,4}(:[0-9A-Fa-f]{0,4}){3,7}\b\]?(:\d+)?)");
  static const std::regex kKey(R"(\b[A-Za-z0-9_-]{32,}={0,2})");
  text = std::regex_replace(text, kHome, "<folder>");
  text = std::regex_replace(text, kKey, "<key>");
  text = std::regex_replace(text, kIpv4, "<address>");
  text = std::regex_replace(text, kIpv6, "<address>");
  return text;
}

namespace {

std::string whole_text(Agent& agent, std::vector<std::string>& words) {
  const AgentParts& parts = agent.parts();
  const Millis now = parts.clock.now_wall();
  capnp::MallocMessageBuilder message;
  auto builder = message.initRoot<rpc::Snapshot>();
  agent.write_snapshot(builder);
  const rpc::Snapshot::Reader snapshot = builder.asReader();

  std::string text = "Shoal " + std::string(snapshot.getVersion().cStr()) + " on " +
                     own_host_card().system + ", " + format_utc(now) + ", running since " +
                     format_utc(Millis{snapshot.getStartedAtMs()}) + "\n";
  const auto verdict_of = [](rpc::Verdict::Reader from) {
    Verdict verdict;
    verdict.activity = static_cast<Activity>(from.getActivity());
    verdict.why = read_message(from.getWhy());
    verdict.rule = from.getRule().cStr();
    return verdict_text(verdict);
  };
  text += "overall: " + verdict_of(snapshot.getOverall()) + "\n";
  text += "\nDevices\n";
  for (const auto device : snapshot.getDevices()) {
    const auto info = device.getReport().getInfo();
    text += "  " + std::string(info.getSelector().cStr()) + ": " + info.getName().cStr() + ", " +
            info.getDriver().cStr() + ", " + std::to_string(info.getMemoryBytes()) + " bytes, " +
            (device.getLent() ? "lent" : "not lent") + ", exact " +
            (device.getReport().getSelfTest().getExact() ? "yes" : "no") + ", restarts " +
            std::to_string(device.getRestarts()) + ", " + verdict_of(device.getVerdict()) + "\n";
  }
  text += "\nCoordinators\n";
  for (const auto connection : snapshot.getConnections()) {
    text += "  " + std::string(connection.getState().cStr()) + " " + connection.getReason().cStr() +
            "\n";
  }
  text += "\nSensors\n";
  for (const auto sensor : snapshot.getSensors()) {
    text += "  " + std::string(sensor.getName().cStr()) + ": " +
            (sensor.getKnown() ? "known by " : "not known, ") + sensor.getBackend().cStr() + " " +
            sensor.getProblem().cStr() + "\n";
  }
  text += "\nSettings that are not at their default\n";
  const Settings& settings = parts.settings.now();
  for (const SettingSpec& spec : settings.table()) {
    if (settings.value(spec.key) == spec.fallback) continue;
    text += "  " + std::string(spec.key) + " = " +
            (is_private(spec.key) ? "<private>" : value_text(settings.value(spec.key))) + "\n";
  }
  text += "\nThe last day\n";
  const auto spans = parts.records.trace(now - kDay, now, kSpans);
  if (spans.ok()) {
    static constexpr const char* kResources[] = {"gpu", "cpu", "network"};
    for (const TraceSpan& span : spans.value()) {
      text += "  " + format_utc(span.start) + " " + kResources[static_cast<size_t>(span.resource)] +
              " " + verdict_text(span.verdict) + "\n";
    }
  }
  text += "\nLog\n";
  for (const LogLine& line : parts.log.after(0, kLogLines)) text += "  " + line.text() + "\n";

  words = agent.private_words();
  words.push_back(host_name());
  words.push_back(snapshot.getStateFolder().cStr());
  return text;
}

}  // namespace

rpc::Task<std::string> make_bundle(Agent& agent) {
  std::vector<std::string> words;
  const std::string text = whole_text(agent, words);
  std::string clean;
  size_t done = 0;
  while (done < text.size()) {
    // Nothing private goes over the end of a line.
    const size_t line_end = text.find('\n', std::min(done + kSliceBytes, text.size()));
    const size_t end = line_end == std::string::npos ? text.size() : line_end + 1;
    clean += redact(std::string_view(text).substr(done, end - done), words);
    done = end;
    co_await agent.parts().loop.timer.afterDelay(0 * kj::NANOSECONDS);
  }
  co_return clean;
}

}  // namespace shoal::client
