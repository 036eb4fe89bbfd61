#include "client/records/condition_bytes.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace shoal::client {
namespace {

constexpr uint8_t kForm = 2;
constexpr size_t kTextMax = 200;
constexpr size_t kListMax = 32;
constexpr uint8_t kUnknown = 0xff;
constexpr int64_t kMemoryUnit = int64_t{64} << 20;

void put_text(ByteWriter& to, std::string_view text) {
  const std::string_view cut = cut_utf8(text, kTextMax);
  to.u8(static_cast<uint8_t>(cut.size()));
  to.text(cut);
}
Result<std::string> take_text(ByteReader& from) {
  SHOAL_TRY_ASSIGN(size, from.u8("text"));
  SHOAL_TRY_ASSIGN(text, from.text(size));
  return std::string(text);
}

void put_flag(ByteWriter& to, const std::optional<bool>& flag) {
  to.u8(flag ? (*flag ? 1 : 0) : kUnknown);
}
Result<std::optional<bool>> take_flag(ByteReader& from) {
  SHOAL_TRY_ASSIGN(value, from.u8("flag"));
  return value == kUnknown ? std::optional<bool>() : std::optional<bool>(value != 0);
}

// A whole number from 0 to 250.
void put_small(ByteWriter& to, const std::optional<double>& value) {
  to.u8(value && *value >= 0 ? static_cast<uint8_t>(std::lround(std::min(*value, 250.0)))
                             : kUnknown);
}
Result<std::optional<double>> take_small(ByteReader& from) {
  SHOAL_TRY_ASSIGN(value, from.u8("number"));
  return value == kUnknown ? std::optional<double>() : std::optional<double>(value);
}

std::optional<double> times(const std::optional<double>& value, double factor) {
  return value ? std::optional<double>(*value * factor) : std::optional<double>();
}

// Rounded down: what is free is not to be made more of.
void put_memory(ByteWriter& to, const std::optional<Bytes>& bytes) {
  to.u32(bytes ? static_cast<uint32_t>(
                     std::clamp<int64_t>(bytes->count / kMemoryUnit, 0, UINT32_MAX - 1))
               : UINT32_MAX);
}
Result<std::optional<Bytes>> take_memory(ByteReader& from) {
  SHOAL_TRY_ASSIGN(units, from.u32("memory"));
  if (units == UINT32_MAX) return std::optional<Bytes>();
  return std::optional<Bytes>(Bytes{int64_t{units} * kMemoryUnit});
}

void put_gpu(ByteWriter& to, const GpuReading& gpu) {
  put_text(to, gpu.pci_address);
  put_text(to, gpu.uuid);
  put_text(to, gpu.name);
  put_small(to, gpu.temperature_c);
  put_small(to, times(gpu.load, 100));
  put_memory(to, gpu.memory_total);
  put_memory(to, gpu.memory_used);
}
Result<GpuReading> take_gpu(ByteReader& from) {
  GpuReading gpu;
  SHOAL_TRY_ASSIGN(pci_address, take_text(from));
  SHOAL_TRY_ASSIGN(uuid, take_text(from));
  SHOAL_TRY_ASSIGN(name, take_text(from));
  SHOAL_TRY_ASSIGN(temperature, take_small(from));
  SHOAL_TRY_ASSIGN(load, take_small(from));
  SHOAL_TRY_ASSIGN(total, take_memory(from));
  SHOAL_TRY_ASSIGN(used, take_memory(from));
  gpu.pci_address = pci_address;
  gpu.uuid = uuid;
  gpu.name = name;
  gpu.temperature_c = temperature;
  gpu.load = times(load, 0.01);
  gpu.memory_total = total;
  gpu.memory_used = used;
  return gpu;
}

// Ten watt-hours.
constexpr double kEnergyUnit = 0.01;
void put_energy(ByteWriter& to, double kilowatt_hours) {
  to.u32(static_cast<uint32_t>(std::clamp(kilowatt_hours / kEnergyUnit, 0.0, 4e9)));
}
Result<double> take_energy(ByteReader& from) {
  SHOAL_TRY_ASSIGN(units, from.u32("energy"));
  return units * kEnergyUnit;
}

// The number of items that follow, or kUnknown.
template <class List>
size_t put_count(ByteWriter& to, const std::optional<List>& list) {
  const size_t count = list ? std::min(list->size(), kListMax) : 0;
  to.u8(list ? static_cast<uint8_t>(count) : kUnknown);
  return count;
}

}  // namespace

ByteVector condition_to_bytes(const StoredCondition& condition) {
  const Readings& readings = condition.readings;
  const std::optional<Millis>& last_input = condition.last_input;
  ByteWriter to;
  to.u8(kForm);
  put_energy(to, condition.spent.kilowatt_hours_today);
  put_energy(to, condition.spent.kilowatt_hours_month);
  put_memory(to, condition.spent.transferred_month);
  put_small(to, condition.own_gpu_load * 100);
  to.u64(last_input ? static_cast<uint64_t>(last_input->count) : UINT64_MAX);
  for (const std::optional<bool>& flag : {readings.locked, readings.on_battery, readings.game_mode,
                                          readings.online, readings.metered}) {
    put_flag(to, flag);
  }
  to.u8(readings.sleeping ? 1 : 0);
  put_small(to, readings.battery_percent);
  put_text(to, readings.power_profile.value_or(""));
  put_small(to, times(readings.other_cpu_load, 100));
  put_memory(to, readings.memory_available);
  put_small(to, readings.cpu_temperature_c);
  put_memory(to, readings.cache_disk_free);
  // Who keeps the screen on, and not why: the title of a film is nobody's business.
  const size_t inhibitors = put_count(to, readings.inhibitors);
  for (size_t i = 0; i < inhibitors; ++i) put_text(to, (*readings.inhibitors)[i].who);
  const size_t programs = put_count(to, readings.programs);
  for (size_t i = 0; i < programs; ++i) put_text(to, (*readings.programs)[i]);
  const size_t gpus = put_count(to, readings.gpus);
  for (size_t i = 0; i < gpus; ++i) put_gpu(to, (*readings.gpus)[i]);
  return to.take();
}

Result<StoredCondition> condition_from_bytes(ByteSpan bytes) {
  ByteReader from(bytes);
  SHOAL_TRY_ASSIGN(form, from.u8("form"));
  if (form != kForm) return Error{ErrorCode::kUnsupported, "conditions in another form"};
  StoredCondition condition;
  Readings& readings = condition.readings;
  SHOAL_TRY_ASSIGN(energy_today, take_energy(from));
  SHOAL_TRY_ASSIGN(energy_month, take_energy(from));
  SHOAL_TRY_ASSIGN(transferred, take_memory(from));
  SHOAL_TRY_ASSIGN(own_gpu_load, take_small(from));
  condition.spent = {energy_today, energy_month, transferred.value_or(Bytes{0})};
  condition.own_gpu_load = own_gpu_load.value_or(0) / 100;
  SHOAL_TRY_ASSIGN(last_input, from.u64("last input"));
  if (last_input <= static_cast<uint64_t>(INT64_MAX))
    condition.last_input = Millis{static_cast<int64_t>(last_input)};
  for (std::optional<bool>* flag : {&readings.locked, &readings.on_battery, &readings.game_mode,
                                    &readings.online, &readings.metered}) {
    SHOAL_TRY_ASSIGN(value, take_flag(from));
    *flag = value;
  }
  SHOAL_TRY_ASSIGN(sleeping, from.u8("sleeping"));
  SHOAL_TRY_ASSIGN(battery, take_small(from));
  SHOAL_TRY_ASSIGN(profile, take_text(from));
  SHOAL_TRY_ASSIGN(load, take_small(from));
  SHOAL_TRY_ASSIGN(memory, take_memory(from));
  SHOAL_TRY_ASSIGN(temperature, take_small(from));
  SHOAL_TRY_ASSIGN(disk, take_memory(from));
  readings.sleeping = sleeping != 0;
  readings.battery_percent = battery;
  if (!profile.empty()) readings.power_profile = profile;
  readings.other_cpu_load = times(load, 0.01);
  readings.memory_available = memory;
  readings.cpu_temperature_c = temperature;
  readings.cache_disk_free = disk;

  SHOAL_TRY_ASSIGN(inhibitors, from.u8("inhibitors"));
  if (inhibitors != kUnknown) readings.inhibitors.emplace();
  for (int i = 0; inhibitors != kUnknown && i < inhibitors; ++i) {
    SHOAL_TRY_ASSIGN(who, take_text(from));
    readings.inhibitors->push_back({who, ""});
  }
  SHOAL_TRY_ASSIGN(programs, from.u8("programs"));
  if (programs != kUnknown) readings.programs.emplace();
  for (int i = 0; programs != kUnknown && i < programs; ++i) {
    SHOAL_TRY_ASSIGN(program, take_text(from));
    readings.programs->push_back(program);
  }
  SHOAL_TRY_ASSIGN(gpus, from.u8("gpus"));
  if (gpus != kUnknown) readings.gpus.emplace();
  for (int i = 0; gpus != kUnknown && i < gpus; ++i) {
    SHOAL_TRY_ASSIGN(gpu, take_gpu(from));
    readings.gpus->push_back(gpu);
  }
  return condition;
}

}  // namespace shoal::client
