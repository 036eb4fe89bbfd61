#include "coordinator/work/hardware.h"

#include <iterator>

namespace shoal {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

constexpr Card geforce(const char* name, const char* title, int multiprocessors, double boost_mhz,
                       double gigabytes, double gigabytes_per_second, double price_usd,
                       double watts, const char* source) {
  return {name,
          title,
          /*consumer=*/true,
          geforce_fp16_flops(multiprocessors, boost_mhz * 1e6),
          geforce_int8_ops(multiprocessors, boost_mhz * 1e6),
          gigabytes * kGiga,
          gigabytes_per_second * kGiga,
          price_usd,
          watts,
          source};
}

constexpr Card server(const char* name, const char* title, double teraflops, double int8_teraops,
                      double gigabytes, double gigabytes_per_second, double price_usd, double watts,
                      const char* source) {
  return {name,
          title,
          /*consumer=*/false,
          teraflops * kTera,
          int8_teraops * kTera,
          gigabytes * kGiga,
          gigabytes_per_second * kGiga,
          price_usd,
          watts,
          source};
}

// What was only recalled says so: no maker's page could be opened for it.
constexpr const char* kTuring =
    "rates [D] from multiprocessors and reference boost clock; the rest [R] from NVIDIA's Turing "
    "white paper and product pages";
constexpr const char* kAmpere =
    "rates [D] from multiprocessors and boost clock; the rest [R] from NVIDIA's GA102 white paper "
    "and product pages";
constexpr const char* kAda =
    "rates [D] from multiprocessors and boost clock; the rest [R] from NVIDIA's Ada white paper "
    "and product pages";
constexpr const char* kBlackwell =
    "rates [D] from multiprocessors and boost clock; the rest [R] from NVIDIA's RTX Blackwell "
    "white paper and product pages";

constexpr Card kCards[] = {
    geforce("RTX2060", "GeForce RTX 2060", 30, 1680, 6, 336, 349, 160, kTuring),
    geforce("RTX2070", "GeForce RTX 2070", 36, 1620, 8, 448, 499, 175, kTuring),
    geforce("RTX2080", "GeForce RTX 2080", 46, 1710, 8, 448, 699, 215, kTuring),
    geforce("RTX2080Ti", "GeForce RTX 2080 Ti", 68, 1545, 11, 616, 999, 250, kTuring),
    geforce("RTX3060", "GeForce RTX 3060 (12 GB)", 28, 1777, 12, 360, 329, 170,
            "rate [D], and [F] docs/SOURCES.md 1 (25 TFLOPS, 360 GB/s); clock, power [F] "
            "cputronic.com RTX 3060 page; price [R]"),
    geforce("RTX3060Ti", "GeForce RTX 3060 Ti", 38, 1665, 8, 448, 399, 200, kAmpere),
    geforce("RTX3070", "GeForce RTX 3070", 46, 1725, 8, 448, 499, 220,
            "rate [D]; clock, memory, power, price [F] NVIDIA's launch figures at megagames.com; "
            "bandwidth [R]"),
    geforce("RTX3080", "GeForce RTX 3080 (10 GB)", 68, 1710, 10, 760, 699, 320,
            "rate [D], as docs/SOURCES.md 1 has it [R] (59.5 TFLOPS, GA102 white paper); clock, "
            "memory, power, price [F] NVIDIA's launch figures at megagames.com; bandwidth [R]"),
    geforce("RTX3080Ti", "GeForce RTX 3080 Ti", 80, 1665, 12, 912, 1199, 350, kAmpere),
    geforce("RTX3090", "GeForce RTX 3090", 82, 1695, 24, 936, 1499, 350,
            "rate [D], and [F] docs/SOURCES.md 1 (71 TFLOPS, 936 GB/s; NVIDIA GA102 white paper "
            "table 9); clock, power, price [F] gfxspeak.com"),
    geforce("RTX3090Ti", "GeForce RTX 3090 Ti", 84, 1860, 24, 1008, 1999, 450, kAmpere),
    geforce("RTX4060", "GeForce RTX 4060", 24, 2460, 8, 272, 299, 115, kAda),
    geforce("RTX4060Ti", "GeForce RTX 4060 Ti (8 GB)", 34, 2535, 8, 288, 399, 160, kAda),
    geforce("RTX4060Ti-16GB", "GeForce RTX 4060 Ti (16 GB)", 34, 2535, 16, 288, 499, 165, kAda),
    geforce("RTX4070", "GeForce RTX 4070", 46, 2475, 12, 504, 599, 200,
            "rate [D]; clock, memory, bandwidth [F] cputronic.com RTX 4070 page; power [F] "
            "cpu-gpu.alldbin.com; price [R]"),
    geforce("RTX4070Ti", "GeForce RTX 4070 Ti", 60, 2610, 12, 504, 799, 285,
            "rate [D]; multiprocessors, clock, memory, bandwidth, power [F] guru3d.com RTX 4070 Ti "
            "review; price [R]"),
    geforce("RTX4070TiSuper", "GeForce RTX 4070 Ti Super", 66, 2610, 16, 672, 799, 285, kAda),
    geforce("RTX4080", "GeForce RTX 4080", 76, 2505, 16, 717, 1199, 320,
            "rate [D]; multiprocessors, clock, memory, bandwidth, power, price [F] guru3d.com RTX "
            "4070 Ti review"),
    geforce("RTX4090", "GeForce RTX 4090", 128, 2520, 24, 1008, 1599, 450,
            "rate [D], and [F] docs/SOURCES.md 1 (165 TFLOPS, 1008 GB/s; NVIDIA Ada white paper "
            "v2.1 table 2: 165.2, int8 660.6); clock, power, price [F] gfxspeak.com"),
    geforce("RTX5060Ti-16GB", "GeForce RTX 5060 Ti (16 GB)", 36, 2572, 16, 448, 429, 180,
            kBlackwell),
    geforce("RTX5070", "GeForce RTX 5070", 48, 2512, 12, 672, 549, 250, kBlackwell),
    geforce("RTX5070Ti", "GeForce RTX 5070 Ti", 70, 2452, 16, 896, 749, 300, kBlackwell),
    geforce("RTX5080", "GeForce RTX 5080", 84, 2617, 16, 960, 999, 360, kBlackwell),
    geforce("RTX5090", "GeForce RTX 5090", 170, 2407, 32, 1792, 1999, 575,
            "rate [D]; multiprocessors, memory, bandwidth [F] libertify.com on NVIDIA's RTX "
            "Blackwell white paper; clock, power, price [R]"),
    {"RX7900XTX", "Radeon RX 7900 XTX", true, 122.8 * kTera, 122.8 * kTera, 24 * kGiga, 960 * kGiga,
     999, 355,
     "memory, bandwidth, power, price [F] pcspecchart.com; rates [R] from AMD's product page (123 "
     "TFLOPS by matrix instructions; int8 has no higher rate)"},
    server("A100-SXM-40GB", "A100 SXM 40 GB", 312, 624, 40, 1555, 10'000, 400,
           "[F] NVIDIA A100 datasheet by glennklockwood.com/garden/processors/A100; price [R]"),
    server("A100-SXM-80GB", "A100 SXM 80 GB", 312, 624, 80, 2039, 15'000, 400,
           "[F] NVIDIA A100 datasheet by glennklockwood.com/garden/processors/A100; price [F] "
           "ozyphus.github.io/gpu-maths.html"),
    server("A100-PCIe-80GB", "A100 PCIe 80 GB", 312, 624, 80, 1935, 15'000, 300,
           "rates, bandwidth as of NVIDIA's A100 datasheet [R]; price as of the SXM module [D]"),
    server("H100-PCIe", "H100 PCIe", 756, 1513, 80, 2000, 25'000, 350,
           "rates [F] hmc-tech.com (756.45, 1513; docs/SOURCES.md 1 has 756 [R]); memory, "
           "bandwidth, power [F] NVIDIA product brief PB-11133-001; price [R]"),
    server("H100-SXM", "H100 SXM", 989.4, 1978.9, 80, 3350, 30'000, 700,
           "[F] glennklockwood.com/garden/processors/h100 (docs/SOURCES.md 1 has 989 [R]); price "
           "[F] ozyphus.github.io/gpu-maths.html"),
    server("H200-SXM", "H200 SXM", 989.4, 1978.9, 141, 4800, 32'000, 700,
           "[F] NVIDIA's H200 page by morphllm.com/nvidia-h200, halved where it counts sparsity; "
           "power [F] saulelectric.com; price [R]"),
    server("L4", "L4", 121, 242.5, 24, 300, 2'500, 72,
           "[F] grokipedia.com NVIDIA L4 vs L40S, halved where it counts sparsity; price [R]"),
    server("L40S", "L40S", 362.05, 733, 48, 864, 7'500, 350,
           "[F] NVIDIA L40S datasheet at mullet.se; price [R]"),
};

constexpr std::string_view kMakers[] = {"nvidia", "geforce", "amd", "radeon"};

}  // namespace

std::span<const Card> all_cards() { return kCards; }

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      plain += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      plain += c;
    }
  }
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view maker : kMakers) {
      if (plain.size() > maker.size() && plain.starts_with(maker)) {
        plain.erase(0, maker.size());
        again = true;
      }
    }
  }
  return plain;
}

Result<const Card*> find_card(std::string_view name) {
  const std::string wanted = plain_name(name);
  std::string known;
  for (const Card& card : kCards) {
    if (plain_name(card.name) == wanted) return &card;
    known += (known.empty() ? "" : ", ") + std::string(card.name);
  }
  return Error{ErrorCode::kNotFound,
               "no card is known as \"" + std::string(name) + "\"; known are " + known};
}

}  // namespace shoal
