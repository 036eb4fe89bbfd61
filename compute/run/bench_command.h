#pragma once
// `shoal-run bench`: what a device does, what a model does on it, what the machine could do at
// best, and what another program does in the same minutes.

#include <cstdint>
#include <string>
#include <vector>

#include "base/cli.h"
#include "compute/run/model_bench.h"
#include "compute/run/options.h"

namespace shoal::compute {

class BenchCommand {
 public:
  explicit BenchCommand(CommandLine& line);

 private:
  struct Figures;

  Result<void> run();
  Result<Figures> measure(Device& device) const;
  Json json(const Device& device, const Figures& figures) const;
  void show(const Device& device, const Figures& figures) const;

  CommandLine& line_;
  ModelOptions common_;
  ModelBenchPlan plan_;
  std::string rival_;
};

}  // namespace shoal::compute
