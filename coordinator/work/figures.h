#pragma once
// Decides how figures are written for people: three digits and a unit that fits. Pure.

#include <string>

namespace shoal {

std::string figure_text(double value);                  // "0.98", "59.5", "12,300".
std::string unit_text(double value, const char* unit);  // "59.5 TFLOPS" of 5.95e13 and "FLOPS".
std::string seconds_text(double seconds);               // "403 ms", "12 s", "3.1 h".
std::string percent_text(double part);                  // "34 %" of 0.34.
std::string count_text(long long count, const char* one, const char* many);  // "1 card", "2 cards".

}  // namespace shoal
