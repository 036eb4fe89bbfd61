// How many megabytes of text a second become tokens, and tokens text, with one vocabulary. Prints
// one JSON object. usage: tokenizer_bench FOLDER-WITH-tokenizer.json TEXT

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "compute/tokenizer/tokenizer.h"

using namespace shoal;

namespace {

constexpr int kRuns = 5;

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The median of several runs.
template <class Work>
double seconds(const Work& work) {
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    times.push_back(taken.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: tokenizer_bench FOLDER TEXT\n", stderr);
    return 2;
  }
  const std::string definition = R"({"format":"huggingface","tokenizer":)" +
                                 file_text(std::string(arguments[1]) + "/tokenizer.json") + "}";
  const std::string text = file_text(arguments[2]);
  const auto begin = std::chrono::steady_clock::now();
  const Result<Tokenizer> tokenizer = Tokenizer::from_definition(definition);
  const std::chrono::duration<double> load = std::chrono::steady_clock::now() - begin;
  if (!tokenizer.ok() || text.empty()) {
    std::fprintf(stderr, "tokenizer_bench: %s\n",
                 tokenizer.ok() ? "the text is empty" : tokenizer.error().message.c_str());
    return 1;
  }
  std::vector<int32_t> ids;
  const double encode = seconds([&] { ids = tokenizer.value().encode(text, false, true); });
  std::string back;
  const double decode = seconds([&] { back = tokenizer.value().decode(ids); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  const nlohmann::json answer = {{"load_seconds", load.count()},
                                 {"tokens", ids.size()},
                                 {"encode_mb_per_second", megabytes / encode},
                                 {"decode_mb_per_second", megabytes / decode}};
  std::puts(answer.dump().c_str());
}
