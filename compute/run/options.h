#pragma once
// What most commands of shoal-run share: options for a model and a device, and how answers are
// printed.

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>

#include "compute/compute.h"
#include "compute/models/json_text.h"
#include "compute/models/model.h"

namespace shoal::compute {

struct ModelOptions {
  std::string model, quantise;
  std::string device = "cpu";
  int threads = 0;

  void add_model(CLI::App& command, bool required) {
    auto* option = command.add_option("--model", model, "A Hugging Face folder or a .gguf file");
    if (required) option->required();
    command.add_option("--quantize", quantise,
                       "Round matrices of 16 and 32 bits first: q8_0, q4_0 or q4_k_m");
  }
  Result<Model> opened() const {
    OpenOptions options;
    if (!quantise.empty()) {
      SHOAL_TRY_ASSIGN(mode, quant_mode(quantise));
      options.quantise = mode;
    }
    SHOAL_TRY_ASSIGN(result, open_model(model, options));
    if (!quantise.empty() && result.quantised.empty()) {
      return Error{
          ErrorCode::kInvalid,
          "--quantize: the model has no matrix of 16 or 32 bits whose rows are whole blocks"};
    }
    return result;
  }
  void add_device(CLI::App& command) {
    command.add_option("--device", device, "cpu, vulkan, vulkan:N, or a device's id")
        ->capture_default_str();
    command.add_option("--threads", threads, "Threads of the cpu plane; 0: all cores")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
  }
  Result<std::unique_ptr<Device>> open() const { return open_device(device, threads); }
};

inline void print(const Json& object) {
  // Text that a model made is valid UTF-8; names of devices and files need not be.
  std::cout << object.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

inline Json device_json(const DeviceInfo& info) {
  return {{"id", info.id},
          {"selector", info.selector},
          {"plane", info.plane},
          {"name", info.name},
          {"driver", info.driver},
          {"memory_bytes", info.memory_bytes},
          {"software", info.software}};
}

}  // namespace shoal::compute
