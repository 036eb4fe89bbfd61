// shoal-run: one process, one device. Generates, measures and checks, for developers, bug reports
// and comparisons; and cuts a model into sealed shards for `shoalctl model publish`.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

#include "base/cli.h"
#include "base/clock.h"
#include "base/files.h"
#include "compute/chat/chat_template.h"
#include "compute/compute.h"
#include "compute/models/json_text.h"
#include "compute/models/model.h"
#include "compute/run/bench_command.h"
#include "compute/run/generate.h"
#include "compute/run/options.h"
#include "compute/shards/cut.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

constexpr Bytes kTextBytesMax{256 << 20};

std::string gigabytes(double bytes) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f GB", bytes / 1e9);
  return buffer;
}

Result<std::string> read_prompt_file(const std::string& path) {
  SHOAL_TRY_ASSIGN(bytes, read_file(path, kTextBytesMax));
  return std::string(as_text(bytes));
}

class GenerateCommand {
 public:
  explicit GenerateCommand(CommandLine& line) : line_(line) {
    CLI::App& c = line.command("generate", "Continue a prompt", [this] { return run(); });
    common_.add_model(c, true);
    common_.add_device(c);
    c.add_option("--prompt", options_.prompt, "The text to continue");
    c.add_option("--prompt-file", prompt_file_, "A file that holds it")->excludes("--prompt");
    CLI::Option* const chat =
        c.add_option("--chat", chat_, "What a user says, put as the model's chat template puts it")
            ->excludes("--prompt")
            ->excludes("--prompt-file");
    c.add_option("--system", system_, "With --chat: what the model is told before it")->needs(chat);
    c.add_option("--max-tokens", options_.tokens_max, "Stop after so many tokens")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
        ->capture_default_str();
    SamplingOptions& s = options_.sampling;
    c.add_option("--temperature", s.temperature, "0: always the likeliest token")
        ->capture_default_str();
    c.add_option("--top-k", s.top_k, "Keep so many of the likeliest; 0: all")
        ->capture_default_str();
    c.add_option("--top-p", s.top_p, "Keep the likeliest that reach this together")
        ->capture_default_str();
    c.add_option("--min-p", s.min_p, "Keep those so likely relative to the likeliest")
        ->capture_default_str();
    c.add_option("--repetition-penalty", s.repetition_penalty, "Above 1: repeat less")
        ->capture_default_str();
    c.add_option("--seed", s.seed, "The same seed gives the same text")->capture_default_str();
    c.add_option("--chunk", options_.chunk, "Prompt tokens in one step")->capture_default_str();
    c.add_option("--cut", options_.cuts,
                 "Run as several stages: the fragments that begin one (0 is the embedding)")
        ->delimiter(',');
    c.add_flag("--ignore-eos", options_.ignore_eos, "Go on after a token that ends a text");
    c.add_flag("--logits", logits_, "With --json: the logits of the prompt's last position");
  }

 private:
  Result<void> run() {
    if (!prompt_file_.empty()) {
      SHOAL_TRY_ASSIGN(prompt, read_prompt_file(prompt_file_));
      options_.prompt = std::move(prompt);
    }
    if (chat_) {
      std::vector<ChatMessage> messages;
      if (system_) messages.push_back({"system", *system_});
      messages.push_back({"user", *chat_});
      options_.chat = chat_variables(messages);
      options_.now_ms = SystemClock().now_wall().count;
    }
    SHOAL_TRY_ASSIGN(model, common_.opened());
    SHOAL_TRY_ASSIGN(device, common_.open());
    const bool json = line_.json();
    options_.digest = json;  // Nobody else sees it, and it costs time.
    SHOAL_TRY_ASSIGN(report, generate(model, *device, options_, [json](std::string_view text) {
                       if (!json) std::cout << text << std::flush;
                     }));
    if (!json) {
      std::cout << std::endl;
      std::fprintf(stderr, "%zu + %zu tokens, %.1f and %.1f tokens/s, stopped by %s\n",
                   report.prompt_ids.size(), report.ids.size(), report.prefill_tokens_per_second,
                   report.decode_tokens_per_second, report.stop.c_str());
      return {};
    }
    Json object = {{"prompt_ids", report.prompt_ids},
                   {"ids", report.ids},
                   {"text", report.text},
                   {"stop", report.stop},
                   {"digest", report.digest.hex()},
                   {"prefill_tokens_per_second", report.prefill_tokens_per_second},
                   {"decode_tokens_per_second", report.decode_tokens_per_second},
                   {"device", device->info().id}};
    if (logits_) object["last_logits"] = report.last_logits;
    print(object);
    return {};
  }

  CommandLine& line_;
  ModelOptions common_;
  GenerateOptions options_;
  std::string prompt_file_;
  std::optional<std::string> chat_, system_;
  bool logits_ = false;
};

class DevicesCommand {
 public:
  explicit DevicesCommand(CommandLine& line) : line_(line) {
    line.command("devices", "List what can compute here, and why the rest cannot",
                 [this] { return run(); });
  }

 private:
  Result<void> run() {
    Json devices = Json::array();
    Json absent = Json::object();
    for (const auto& backend : make_backends()) {
      const std::vector<DeviceInfo> found = backend->devices();
      for (const DeviceInfo& info : found) devices.push_back(device_json(info));
      if (found.empty()) absent[std::string(backend->plane())] = backend->why_none();
    }
    if (line_.json()) {
      print({{"devices", devices}, {"absent", absent}});
      return {};
    }
    for (const Json& device : devices) {
      std::printf("%-10s %-8s %10s  %s%s\n", device["selector"].get<std::string>().c_str(),
                  device["plane"].get<std::string>().c_str(),
                  gigabytes(device["memory_bytes"].get<double>()).c_str(),
                  device["name"].get<std::string>().c_str(),
                  device["software"].get<bool>() ? " (software)" : "");
    }
    for (const auto& [plane, why] : absent.items()) {
      std::printf("%-10s none: %s\n", plane.c_str(), why.get<std::string>().c_str());
    }
    return {};
  }

  CommandLine& line_;
};

class SelfTestCommand {
 public:
  explicit SelfTestCommand(CommandLine& line) : line_(line) {
    common_.add_device(line.command("selftest", "Compare a device bit by bit with the reference",
                                    [this] { return run(); }));
  }

 private:
  Result<void> run() {
    SHOAL_TRY_ASSIGN(device, common_.open());
    SHOAL_TRY_ASSIGN(report, self_test(*device));
    if (line_.json()) {
      print({{"device", device_json(device->info())},
             {"exact", report.exact},
             {"samples", report.samples},
             {"failed", report.failed},
             {"unsupported", report.unsupported},
             {"first_failure", report.first_failure}});
    } else {
      std::printf("%s: %d samples, %d failed, %d unsupported: %s\n",
                  device->info().selector.c_str(), report.samples, report.failed,
                  report.unsupported, report.exact ? "exact" : "not exact");
    }
    if (!report.exact) {
      return Error{ErrorCode::kUnsupported,
                   device->info().selector + " does not compute exactly: " +
                       (report.first_failure.empty() ? "an op is missing" : report.first_failure)};
    }
    return {};
  }

  CommandLine& line_;
  ModelOptions common_;
};

class PerplexityCommand {
 public:
  explicit PerplexityCommand(CommandLine& line) : line_(line) {
    CLI::App& c = line.command("perplexity", "Score a text", [this] { return run(); });
    common_.add_model(c, true);
    common_.add_device(c);
    c.add_option("--file", file_, "The text")->required();
    c.add_option("--window", window_, "Tokens of a window, its beginning token among them")
        ->capture_default_str();
    c.add_option("--windows", windows_max_, "Score only the first so many; 0: all")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
        ->capture_default_str();
    c.add_option("--chunk", chunk_, "Tokens in one step")->capture_default_str();
  }

 private:
  Result<void> run() {
    SHOAL_TRY_ASSIGN(text, read_prompt_file(file_));
    SHOAL_TRY_ASSIGN(model, common_.opened());
    SHOAL_TRY_ASSIGN(device, common_.open());
    SHOAL_TRY_ASSIGN(report, perplexity(model, *device, text, window_, windows_max_, chunk_));
    if (line_.json()) {
      print({{"perplexity", report.perplexity},
             {"scored_tokens", report.scored_tokens},
             {"windows", report.window_nll.size()},
             {"window_nll", report.window_nll}});
    } else {
      std::printf("perplexity %.6f over %lld tokens in %zu windows\n", report.perplexity,
                  static_cast<long long>(report.scored_tokens), report.window_nll.size());
    }
    return {};
  }

  CommandLine& line_;
  ModelOptions common_;
  std::string file_;
  int64_t window_ = 256;
  int64_t windows_max_ = 0;
  int64_t chunk_ = 64;
};

// Prints the only copy of the keys; its reader is `shoalctl model publish`, through a pipe.
class CutCommand {
 public:
  explicit CutCommand(CommandLine& line) {
    CLI::App& c =
        line.command("cut", "Write a model's sealed shards; print their manifest and keys as JSON",
                     [this] { return run(); });
    common_.add_model(c, true);
    c.add_option("--out", folder_, "The folder that the shards are written to")->required();
    c.add_option("--name", name_, "The model's name; else that of its file");
  }

 private:
  Result<void> run() {
    SHOAL_TRY_ASSIGN(model, common_.opened());
    if (!name_.empty()) model.name = name_;
    SHOAL_TRY_ASSIGN(cut, cut_model(model, folder_));
    Json keys = Json::array();
    for (const SecretBytes& key : cut.keys) keys.push_back(hex_encode(key.view()));
    SHOAL_TRY_ASSIGN(manifest, parse_json(write_manifest(cut.manifest), "manifest"));
    Json quantised = Json::array();
    for (const QuantCost::Line& line : model.quantised) {
      quantised.push_back({{"weights", line.role},
                           {"types", line.types},
                           {"relative_error", line.relative_error},
                           {"worst", line.worst},
                           {"worst_tensor", line.worst_tensor}});
    }
    print({{"manifest", std::move(manifest)},
           {"keys", std::move(keys)},
           {"quantised", std::move(quantised)}});
    return {};
  }

  ModelOptions common_;
  std::string folder_;
  std::string name_;
};

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("shoal-run", "Runs a model in this process: generate, measure, check, cut");
  GenerateCommand generate(line);
  DevicesCommand devices(line);
  SelfTestCommand self_test(line);
  BenchCommand bench(line);
  PerplexityCommand perplexity(line);
  CutCommand cut(line);
  return line.run(argc, argv);
}
