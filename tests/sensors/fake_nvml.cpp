// NVIDIA's management library, as the JSON file named by SHOAL_FAKE_NVML says:
//   {"init": 0, "hang": false, "devices": [{"domain": 0, "bus": 1, "device": 0, "uuid": "GPU-...",
//     "name": "...", "temperature": 61, "milliwatts": 120000, "millijoules": 5000, "load": 40,
//     "total": 8589934592, "used": 1073741824, "status": 0}]}
// Read anew at each start of the library; what a card tells, and whether all hangs, at each
// question. Cards that came after the start are not seen until the next, as with the real one.

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using nlohmann::json;
using Status = int;

size_t g_count = 0;

json plan() {
  const char* path = std::getenv("SHOAL_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  json read = json::parse(file, nullptr, false);
  return read.is_object() ? read : json::object();
}

// A driver that is stuck.
void hang_if_told() {
  while (plan().value("hang", false)) (void)poll(nullptr, 0, 50);
}

// A handle is the card's number, and one: null is none.
json card(void* handle) {
  hang_if_told();
  const size_t index = reinterpret_cast<size_t>(handle) - 1;
  const json all = plan();
  return all.contains("devices") && index < all["devices"].size() ? all["devices"][index]
                                                                  : json{{"status", 15}};
}

template <class T>
Status give(void* handle, const char* key, T* to) {
  const json what = card(handle);
  if (const Status status = what.value("status", 0); status != 0) return status;
  if (!what.contains(key)) return 3;
  *to = what[key].get<T>();
  return 0;
}

Status give_text(void* handle, const char* key, char* to, unsigned size) {
  const json what = card(handle);
  std::snprintf(to, size, "%s", what.value(key, "").c_str());
  return what.value("status", 0);
}

}  // namespace

extern "C" {

Status nvmlInit_v2() {
  hang_if_told();
  const json all = plan();
  g_count = all.contains("devices") ? all["devices"].size() : 0;
  return all.value("init", 0);
}
Status nvmlShutdown() { return 0; }
const char* nvmlErrorString(Status status) {
  return status == 9 ? "Driver Not Loaded" : status == 15 ? "GPU is lost" : "Unknown Error";
}
Status nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(g_count);
  return 0;
}
Status nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= g_count) return 2;
  *handle = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return 0;
}

struct PciInfo {
  char short_id[16];
  unsigned domain, bus, device, id, subsystem;
  char id_text[32];
};
Status nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* info) {
  const json what = card(handle);
  std::memset(info, 0, sizeof *info);
  info->domain = what.value("domain", 0u);
  info->bus = what.value("bus", 0u);
  info->device = what.value("device", 0u);
  return what.value("status", 0);
}
Status nvmlDeviceGetName(void* handle, char* name, unsigned size) {
  return give_text(handle, "name", name, size);
}
Status nvmlDeviceGetUUID(void* handle, char* uuid, unsigned size) {
  return give_text(handle, "uuid", uuid, size);
}
Status nvmlDeviceGetTemperature(void* handle, int, unsigned* celsius) {
  return give(handle, "temperature", celsius);
}
Status nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  return give(handle, "milliwatts", milliwatts);
}
Status nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules) {
  return give(handle, "millijoules", millijoules);
}
struct Utilization {
  unsigned gpu, memory;
};
Status nvmlDeviceGetUtilizationRates(void* handle, Utilization* rates) {
  return give(handle, "load", &rates->gpu);
}
struct Memory {
  unsigned long long total, free, used;
};
Status nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  const Status status = give(handle, "total", &memory->total);
  return status != 0 ? status : give(handle, "used", &memory->used);
}

}  // extern "C"
