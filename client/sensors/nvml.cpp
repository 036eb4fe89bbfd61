#include "client/sensors/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "base/text.h"

namespace shoal::client {
namespace {

constexpr Millis kLoadEach{30'000};     // How often a library that is not there is looked for.
constexpr Millis kReopenEach{10'000};   // How often late cards are looked for.
constexpr int64_t kFirstRetry = 2'000;  // After a failed start; twice as long each time.
constexpr int64_t kLastRetry = 60'000;
constexpr unsigned kCardsMax = 64;

// The library's interface, as far as we use it. Its numbers never change; its structures carry a
// version in their functions' names.
using Status = int;
constexpr Status kOk = 0;
constexpr Status kNotSupported = 3;
constexpr Status kNoPermission = 4;

struct PciInfo {  // Of nvmlDeviceGetPciInfo_v3.
  char bus_id_short[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Memory {  // Of nvmlDeviceGetMemoryInfo.
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned gpu, memory;
};
using Device = void*;

bool has_ended(const char* text, size_t size) {
  return std::find(text, text + size, '\0') != text + size;
}

// "GPU-0a1B..." as lower-case hex.
std::string uuid_hex(std::string_view text) {
  if (text.starts_with("GPU-")) text.remove_prefix(4);
  std::string hex;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) {
      hex += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c != '-') {
      return "";
    }
  }
  return hex.size() == 32 ? hex : "";
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  const char* (*error_text)(Status) = nullptr;
  Status (*count)(unsigned*) = nullptr;
  Status (*by_index)(unsigned, Device*) = nullptr;
  Status (*pci)(Device, PciInfo*) = nullptr;
  // Null where the driver is too old for it.
  Status (*name)(Device, char*, unsigned) = nullptr;
  Status (*uuid)(Device, char*, unsigned) = nullptr;
  Status (*temperature)(Device, int, unsigned*) = nullptr;
  Status (*power)(Device, unsigned*) = nullptr;
  Status (*energy)(Device, unsigned long long*) = nullptr;
  Status (*utilization)(Device, Utilization*) = nullptr;
  Status (*memory)(Device, Memory*) = nullptr;

  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }

  template <class F>
  bool find(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(handle, symbol));
    return function != nullptr;
  }

  static std::unique_ptr<Library> load() {
    auto library = std::make_unique<Library>();
    library->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library->handle == nullptr) return nullptr;
    Library& l = *library;
    const bool whole = l.find(l.init, "nvmlInit_v2") && l.find(l.shutdown, "nvmlShutdown") &&
                       l.find(l.error_text, "nvmlErrorString") &&
                       l.find(l.count, "nvmlDeviceGetCount_v2") &&
                       l.find(l.by_index, "nvmlDeviceGetHandleByIndex_v2") &&
                       l.find(l.pci, "nvmlDeviceGetPciInfo_v3");
    if (!whole) return nullptr;
    l.find(l.name, "nvmlDeviceGetName");
    l.find(l.uuid, "nvmlDeviceGetUUID");
    l.find(l.temperature, "nvmlDeviceGetTemperature");
    l.find(l.power, "nvmlDeviceGetPowerUsage");
    l.find(l.energy, "nvmlDeviceGetTotalEnergyConsumption");
    l.find(l.utilization, "nvmlDeviceGetUtilizationRates");
    l.find(l.memory, "nvmlDeviceGetMemoryInfo");
    return library;
  }

  Error failed(Status status) const {
    const char* text = error_text(status);
    return {ErrorCode::kUnavailable,
            "the NVIDIA driver fails: " + (text == nullptr ? "error " + std::to_string(status)
                                                           : printable(cut_utf8(text, 200)))};
  }
};

struct Nvml::Card {
  Device device = nullptr;
  GpuReading known;  // What does not change.
};

Nvml::Nvml() : retry_after_(kFirstRetry) {}

Nvml::~Nvml() { close(); }

void Nvml::close() {
  cards_.clear();
  if (running_) library_->shutdown();
  running_ = false;
}

Result<void> Nvml::open(const SensorRequest& request, int present) {
  const Millis now = request.clock.now_monotonic();
  if (library_ == nullptr) {
    if (tried_at_ && now - *tried_at_ < kLoadEach && !request.thorough) {
      return Error{ErrorCode::kNotFound, "NVIDIA's management library is not installed"};
    }
    tried_at_ = now;
    library_ = Library::load();
    if (library_ == nullptr) {
      return Error{ErrorCode::kNotFound, "NVIDIA's management library is not installed"};
    }
  }
  // The library counts cards when it starts: one that comes late is seen by starting it anew.
  const bool may_be_late = cards_.empty() || static_cast<int>(cards_.size()) < present;
  const bool time_to_look = request.thorough || (opened_at_ && now - *opened_at_ >= kReopenEach);
  if (running_ && !(may_be_late && time_to_look)) return {};
  if (start_failed_ && now < retry_at_ && !request.thorough) return *start_failed_;
  close();
  opened_at_ = now;
  // A start without a driver makes the system look for one: so not too often.
  if (const Status status = library_->init(); status != kOk) {
    start_failed_ = library_->failed(status);
    retry_at_ = now + Millis{retry_after_};
    retry_after_ = std::min(retry_after_ * 2, kLastRetry);
    return *start_failed_;
  }
  start_failed_.reset();
  retry_after_ = kFirstRetry;
  running_ = true;
  unsigned count = 0;
  if (const Status status = library_->count(&count); status != kOk) {
    Error error = library_->failed(status);
    close();
    return error;
  }
  for (unsigned i = 0; i < std::min(count, kCardsMax); ++i) {
    Card card;
    PciInfo pci = {};
    // One card that fails does not hide the others.
    if (library_->by_index(i, &card.device) != kOk) continue;
    if (library_->pci(card.device, &pci) != kOk) continue;
    char text[64];
    // Function 0 is the one that computes.
    std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff,
                  pci.device & 0x1f);
    card.known.pci_address = text;
    char words[128] = {};
    if (library_->name != nullptr && library_->name(card.device, words, sizeof words) == kOk &&
        has_ended(words, sizeof words)) {
      card.known.name = printable(words);
    }
    if (library_->uuid != nullptr && library_->uuid(card.device, words, sizeof words) == kOk &&
        has_ended(words, sizeof words)) {
      card.known.uuid = uuid_hex(words);
    }
    cards_.push_back(std::move(card));
  }
  return {};
}

Result<std::vector<GpuReading>> Nvml::read(
    const SensorRequest& request, int present,
    const std::function<bool(const std::string& pci_address)>& asleep) {
  request.about_to_ask("the NVIDIA driver");
  SHOAL_TRY(open(request, present));
  std::vector<GpuReading> readings;
  std::optional<Error> failure;
  bool any_answered = false;
  for (const Card& card : cards_) {
    GpuReading reading = card.known;
    if (asleep(reading.pci_address)) {
      readings.push_back(std::move(reading));
      continue;
    }
    Status worst = kOk;
    const auto ask = [&](auto function, auto... arguments) {
      if (function == nullptr) return false;
      const Status status = function(card.device, arguments...);
      if (status != kOk && status != kNotSupported && status != kNoPermission) worst = status;
      return status == kOk;
    };
    unsigned number = 0;
    if (ask(library_->temperature, 0, &number) && number <= 200) reading.temperature_c = number;
    if (ask(library_->power, &number) && number <= 10'000'000) reading.watts = number / 1'000.0;
    unsigned long long millijoules = 0;
    if (ask(library_->energy, &millijoules)) {
      reading.joules = static_cast<double>(millijoules) / 1'000.0;
    }
    Utilization use = {};
    if (ask(library_->utilization, &use) && use.gpu <= 100) reading.load = use.gpu / 100.0;
    Memory memory = {};
    if (ask(library_->memory, &memory) && memory.total < 1ull << 50 &&
        memory.used <= memory.total) {
      reading.memory_total = Bytes{static_cast<int64_t>(memory.total)};
      reading.memory_used = Bytes{static_cast<int64_t>(memory.used)};
    }
    if (worst != kOk) {
      // What a card tells while it fails counts for nothing; the others are known all the same.
      if (!failure) failure = library_->failed(worst);
      continue;
    }
    any_answered = true;
    readings.push_back(std::move(reading));
  }
  if (failure && !any_answered) {
    // After a sleep a driver may have lost its cards: it is started anew at the next reading.
    close();
    return *failure;
  }
  return readings;
}

}  // namespace shoal::client
