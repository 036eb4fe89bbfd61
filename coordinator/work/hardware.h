#pragma once
// Holds what vendors state about graphics cards: dense rates, memory, bandwidth, price and power,
// each with its source. For plans before anybody has measured anything; a host's own measurements
// always come first. Pure.

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace shoal {

// Rates are peaks without sparsity. FP16 is with FP32 accumulation, which is what training and
// careful inference use: on GeForce cards it is half of the rate that is advertised. Bytes are
// decimal. Memory is the number on the box as decimal gigabytes; the boxes mean binary ones, and
// the 7 % between them are left to the driver and the screen.
struct Card {
  const char* name;   // As a person types it; find_card() forgives case, dashes and makers.
  const char* title;  // As the maker calls it.
  bool consumer;
  double fp16_flops;  // A second.
  double int8_ops;    // A second.
  double memory_bytes;
  double bytes_per_second;  // Of its memory.
  double price_usd;         // Of a new one: the launch price, or for servers a common street price.
  double watts;             // Board power, as its maker limits it.
  const char* source;       // With the marks of docs/SOURCES.md.
};

std::span<const Card> all_cards();

// kNotFound with the names that are known.
Result<const Card*> find_card(std::string_view name);

// The rates of a GeForce card: each multiprocessor does 512 FP16 operations (FP32 accumulation) and
// 2048 int8 operations in a clock, from Turing to Blackwell. It gives what NVIDIA's white papers
// state where they state it (53.8 for the 2080 Ti, 59.5 for the 3080, 165.2 for the 4090, 209.5
// for the 5090).
constexpr double geforce_fp16_flops(int multiprocessors, double boost_hertz) {
  return multiprocessors * boost_hertz * 512;
}
constexpr double geforce_int8_ops(int multiprocessors, double boost_hertz) {
  return multiprocessors * boost_hertz * 2048;
}

// Letters and digits of a name in lower case, without the maker's and the family's name: how cards
// and models are compared.
std::string plain_name(std::string_view name);

}  // namespace shoal
