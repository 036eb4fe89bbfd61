#include "schema/message.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/text.h"
#include "schema/limits.h"

// Qt's lupdate finds the sentences by this name; here they are English.
#define QT_TRANSLATE_NOOP(context, text) text

namespace shoal {
namespace {

// Sorted by code. A rule's sentence says what is; its ".remedy" what would change it.
constexpr MessageSpec kTable[] = {
    {"attention.device_failed", QT_TRANSLATE_NOOP("messages", "{0} does not work: {1}")},
    {"attention.device_not_exact",
     QT_TRANSLATE_NOOP("messages", "{0} computes other results than it should: it gets no work.")},
    {"attention.disk_full",
     QT_TRANSLATE_NOOP("messages", "The disk has no room for Shoal's records: {0}")},
    {"attention.no_device", QT_TRANSLATE_NOOP("messages", "No device is switched on for lending.")},
    {"attention.no_device.remedy",
     QT_TRANSLATE_NOOP("messages", "Switch a device on under Devices.")},
    {"attention.refused", QT_TRANSLATE_NOOP("messages", "{0} refuses this computer: {1}")},
    {"batch.all_out",
     QT_TRANSLATE_NOOP("messages", "Ready. Other computers do all that is left of the jobs.")},
    {"batch.banned",
     QT_TRANSLATE_NOOP("messages",
                       "This coordinator's administrator lets this computer do nothing.")},
    {"batch.denied", QT_TRANSLATE_NOOP("messages", "You allow none of the jobs that there are.")},
    {"batch.denied.remedy",
     QT_TRANSLATE_NOOP("messages", "Allow a kind of work under Coordinators.")},
    {"batch.enough", QT_TRANSLATE_NOOP("messages", "It has as much work ahead as it should have.")},
    {"batch.late",
     QT_TRANSLATE_NOOP(
         "messages", "Another computer's result was there first. This one is paid if it agrees.")},
    {"batch.malformed",
     QT_TRANSLATE_NOOP("messages", "The result is not what was asked for: {0}.")},
    {"batch.no_jobs", QT_TRANSLATE_NOOP("messages", "Ready. There is no job to work on now.")},
    {"batch.not_exact",
     QT_TRANSLATE_NOOP("messages",
                       "Its results are not the same bits as those of other devices, which jobs "
                       "need.")},
    {"batch.not_needed", QT_TRANSLATE_NOOP("messages", "The result is not needed any more.")},
    {"batch.quarantined",
     QT_TRANSLATE_NOOP("messages",
                       "A result of this computer was wrong. It gets no more jobs before {0}.")},
    {"batch.too_large",
     QT_TRANSLATE_NOOP("messages", "No model that the jobs need fits into this device whole.")},
    {"batch.too_long",
     QT_TRANSLATE_NOOP("messages", "All that is left takes longer than you leave it this device.")},
    {"batch.trusted_only",
     QT_TRANSLATE_NOOP("messages",
                       "The jobs that there are run only on computers that the coordinator's "
                       "administrator trusts.")},
    {"batch.unknown_device", QT_TRANSLATE_NOOP("messages", "This device is not ready for jobs.")},
    {"batch.unproven",
     QT_TRANSLATE_NOOP("messages", "The job ended before anybody could check this result.")},
    {"batch.wrong_result",
     QT_TRANSLATE_NOOP("messages", "Other computers got another result than this one.")},
    {"credit.coordinator_restarted",
     QT_TRANSLATE_NOOP("messages",
                       "The coordinator stopped unexpectedly and does not know what was done.")},
    {"credit.host_banned",
     QT_TRANSLATE_NOOP("messages",
                       "The coordinator's administrator banned this computer or its account.")},
    {"credit.host_distrusted",
     QT_TRANSLATE_NOOP("messages",
                       "This computer answered what cannot be right elsewhere in the session.")},
    {"credit.wrong_answer", QT_TRANSLATE_NOOP("messages", "It answered what cannot be right.")},
    {"device.looking", QT_TRANSLATE_NOOP("messages", "Looking for the devices of this computer.")},
    {"device.missing", QT_TRANSLATE_NOOP("messages", "{0} is not there now.")},
    {"device.missing.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Shoal takes it again by itself as soon as its driver shows it.")},
    {"device.not_lent", QT_TRANSLATE_NOOP("messages", "This device is not lent.")},
    {"device.not_lent.remedy", QT_TRANSLATE_NOOP("messages", "Switch it on under Devices.")},
    {"device.not_listed",
     QT_TRANSLATE_NOOP("messages", "The devices of this computer cannot be listed: {0}")},
    {"device.starting", QT_TRANSLATE_NOOP("messages", "{0} is getting ready.")},
    {"device.word_unknown",
     QT_TRANSLATE_NOOP(
         "messages", "The list of devices to lend names '{0}', which is not here. There are: {1}")},
    {"mode.always", QT_TRANSLATE_NOOP("messages", "You chose to work always.")},
    {"mode.paused", QT_TRANSLATE_NOOP("messages", "You paused this until you resume it.")},
    {"mode.paused.remedy", QT_TRANSLATE_NOOP("messages", "Choose Resume.")},
    {"mode.paused_until", QT_TRANSLATE_NOOP("messages", "You paused this until {0}.")},
    {"offline.connecting", QT_TRANSLATE_NOOP("messages", "Connecting to {0}.")},
    {"offline.not_attached",
     QT_TRANSLATE_NOOP("messages", "This computer has not joined a coordinator yet.")},
    {"offline.not_attached.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Join one under Coordinators with the URL that you were given.")},
    {"offline.unreachable", QT_TRANSLATE_NOOP("messages", "{0} cannot be reached: {1}")},
    {"offline.unreachable.remedy",
     QT_TRANSLATE_NOOP("messages", "Shoal tries again by itself, next in {0}.")},
    {"pace.duty",
     QT_TRANSLATE_NOOP("messages", "Computing {0} of the time at most, as you chose.")},
    {"pace.no_temperature",
     QT_TRANSLATE_NOOP("messages",
                       "Nothing tells this device's temperature, so it cannot be held. Computing "
                       "{0} of the time at most.")},
    {"pace.no_watts", QT_TRANSLATE_NOOP("messages",
                                        "Nothing tells this device's power, so it cannot be held. "
                                        "Computing {0} of the time at most.")},
    {"pace.temperature",
     QT_TRANSLATE_NOOP("messages", "Slowed to {0} of the time to stay at {1}.")},
    {"pace.watts", QT_TRANSLATE_NOOP("messages", "Slowed to {0} of the time to stay at {1}.")},
    {"receipts.agree",
     QT_TRANSLATE_NOOP("messages",
                       "Every receipt of {0} is genuine, and together they are the credit that it "
                       "states.")},
    {"receipts.agree_days",
     QT_TRANSLATE_NOOP("messages",
                       "Every receipt of {0} is genuine, and together they are the credit that it "
                       "states. Those up to {1} are in its signed lists of the days; others were "
                       "told the same if their newest root is {2} too.")},
    {"receipts.changed",
     QT_TRANSLATE_NOOP("messages",
                       "What this computer keeps of old receipts of {0} was changed by somebody.")},
    {"receipts.day_false",
     QT_TRANSLATE_NOOP("messages",
                       "{0} signed a list of a day's receipts that does not fit the others: {1}.")},
    {"receipts.differ",
     QT_TRANSLATE_NOOP("messages",
                       "The receipts of {0} are worth {1} credits together, but it states {2}.")},
    {"receipts.false",
     QT_TRANSLATE_NOOP("messages", "The signature of {1} receipts of {0} is false.")},
    {"receipts.false.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Ask whoever runs the coordinator, unless this computer's records were "
                       "changed.")},
    {"receipts.missing", QT_TRANSLATE_NOOP("messages", "{0} owes you {1} receipts.")},
    {"receipts.missing.remedy",
     QT_TRANSLATE_NOOP("messages", "Shoal asks for them by itself whenever it is connected.")},
    {"receipts.not_in_day",
     QT_TRANSLATE_NOOP("messages",
                       "{1} receipts of {0} are not in the lists that it signed for their days.")},
    {"receipts.twice",
     QT_TRANSLATE_NOOP("messages", "{0} has judged the same work more than once, {1} times.")},
    {"receipts.unstated",
     QT_TRANSLATE_NOOP("messages",
                       "Every receipt of {0} is genuine. What credit it states is not known while "
                       "it cannot be reached.")},
    {"receipts.unstated_days",
     QT_TRANSLATE_NOOP(
         "messages",
         "Every receipt of {0} is genuine. Those up to {1} are in its signed lists of "
         "the days; others were told the same if their newest root is {2} too. What "
         "credit it states is not known while it cannot be reached.")},
    {"records.consents_lost",
     QT_TRANSLATE_NOOP("messages",
                       "Your decisions about kinds of work could not be read, so every kind is "
                       "refused until you allow it again: {0}")},
    {"records.consents_lost.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Look through them under Coordinators, then choose anew what becomes of new "
                       "kinds (the setting consent.new_classes).")},
    {"records.damaged",
     QT_TRANSLATE_NOOP(
         "messages",
         "Shoal's records were damaged. They were set aside as {0}, and new ones have "
         "been started.")},
    {"records.failed", QT_TRANSLATE_NOOP("messages", "Shoal's records cannot be kept: {0}")},
    {"records.locked",
     QT_TRANSLATE_NOOP("messages",
                       "Another program is holding Shoal's records. What happens meanwhile is "
                       "remembered and written later.")},
    {"records.newer",
     QT_TRANSLATE_NOOP("messages",
                       "Shoal's records were written by a newer version of Shoal, so nothing is "
                       "added to them.")},
    {"records.newer.remedy", QT_TRANSLATE_NOOP("messages", "Install the newer version again.")},
    {"remote.not_open",
     QT_TRANSLATE_NOOP("messages", "Other computers cannot connect to this one: {0}")},
    {"rule.battery_charge_unknown",
     QT_TRANSLATE_NOOP("messages",
                       "This computer runs on battery, and nothing tells how full it is.")},
    {"rule.battery_charge_unknown.remedy",
     QT_TRANSLATE_NOOP("messages", "Plug it in, or set the lowest charge to 0 under Rules.")},
    {"rule.battery_low",
     QT_TRANSLATE_NOOP("messages", "This computer runs on battery, which is at {0}.")},
    {"rule.battery_low.remedy",
     QT_TRANSLATE_NOOP("messages", "Work starts when it is above {0}, or when you plug it in.")},
    {"rule.battery_unknown",
     QT_TRANSLATE_NOOP(
         "messages",
         "Nothing tells whether this computer runs on battery, so it counts as if it did.")},
    {"rule.battery_unknown.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "If it has no battery, allow work on battery under Rules and set the lowest "
                       "charge to 0.")},
    {"rule.compute_hours",
     QT_TRANSLATE_NOOP("messages", "You chose other hours for computing. The next begin at {0}.")},
    {"rule.compute_hours.remedy",
     QT_TRANSLATE_NOOP("messages", "Change the hours under Rules, or choose 'always'.")},
    {"rule.compute_hours_never",
     QT_TRANSLATE_NOOP("messages", "You chose no hours for computing.")},
    {"rule.compute_hours_never.remedy", QT_TRANSLATE_NOOP("messages", "Choose hours under Rules.")},
    {"rule.cpu_load", QT_TRANSLATE_NOOP("messages", "Other programs use {0} of the processor.")},
    {"rule.cpu_load.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Work starts when they use less than {0}. The limit is under Rules.")},
    {"rule.cpu_load_unknown",
     QT_TRANSLATE_NOOP("messages", "Nothing tells how much other programs use the processor.")},
    {"rule.cpu_load_unknown.remedy",
     QT_TRANSLATE_NOOP(
         "messages", "Set the limit for other programs to 100 % under Rules to work without it.")},
    {"rule.disk_low", QT_TRANSLATE_NOOP("messages", "The disk for models has only {0} left.")},
    {"rule.disk_low.remedy",
     QT_TRANSLATE_NOOP(
         "messages", "Work starts when {0} are free. Make room, or lower the limit under Rules.")},
    {"rule.disk_unknown",
     QT_TRANSLATE_NOOP(
         "messages",
         "Nothing tells how much room the disk for models has. You want {0} to stay free.")},
    {"rule.disk_unknown.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Set that limit to its default or to 0 under Rules to work without it.")},
    {"rule.energy_day",
     QT_TRANSLATE_NOOP("messages", "Shoal used {0} today, which is all that you allow.")},
    {"rule.energy_day.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Work starts after midnight, or when you allow more under Rules.")},
    {"rule.energy_month",
     QT_TRANSLATE_NOOP("messages", "Shoal used {0} this month, which is all that you allow.")},
    {"rule.energy_month.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Work starts with the next month, or when you allow more under Rules.")},
    {"rule.game_mode", QT_TRANSLATE_NOOP("messages", "A game is being played.")},
    {"rule.game_mode.remedy", QT_TRANSLATE_NOOP("messages", "Work starts when the game ends.")},
    {"rule.gpu_load",
     QT_TRANSLATE_NOOP("messages", "Other programs use {0} of this graphics card.")},
    {"rule.gpu_load.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Work starts when they use less than {0}. The limit is under Rules.")},
    {"rule.gpu_load_unknown",
     QT_TRANSLATE_NOOP("messages",
                       "Nothing tells how much other programs use this graphics card.")},
    {"rule.gpu_load_unknown.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Set the limit for other programs to its default or to 100 % under Rules to "
                       "work without it.")},
    {"rule.inhibitor", QT_TRANSLATE_NOOP("messages", "{0} keeps the screen on.")},
    {"rule.inhibitor.remedy",
     QT_TRANSLATE_NOOP(
         "messages",
         "Work starts when it lets go. Or switch off 'wait while a program keeps the screen on'.")},
    {"rule.inhibitor_why", QT_TRANSLATE_NOOP("messages", "{0} keeps the screen on: {1}")},
    {"rule.inhibitor_why.remedy",
     QT_TRANSLATE_NOOP(
         "messages",
         "Work starts when it lets go. Or switch off 'wait while a program keeps the screen on'.")},
    {"rule.inhibitors_unknown",
     QT_TRANSLATE_NOOP(
         "messages",
         "Nothing tells whether a program keeps the screen on, such as a film or a call.")},
    {"rule.inhibitors_unknown.remedy",
     QT_TRANSLATE_NOOP(
         "messages",
         "Switch off 'wait while a program keeps the screen on' under Rules to work without it.")},
    {"rule.leave_by", QT_TRANSLATE_NOOP("messages", "You wanted this computer back at {0}.")},
    {"rule.leave_by.remedy",
     QT_TRANSLATE_NOOP("messages", "Choose another time to leave by, or none.")},
    {"rule.memory_low", QT_TRANSLATE_NOOP("messages", "Only {0} of memory are free.")},
    {"rule.memory_low.remedy",
     QT_TRANSLATE_NOOP(
         "messages",
         "Work starts when {0} are free. Close programs, or lower the limit under Rules.")},
    {"rule.memory_unknown",
     QT_TRANSLATE_NOOP("messages",
                       "Nothing tells how much memory is free. You want {0} to stay free.")},
    {"rule.memory_unknown.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Set that limit to its default or to 0 under Rules to work without it.")},
    {"rule.metered",
     QT_TRANSLATE_NOOP("messages", "The network is metered: what it carries may cost you money.")},
    {"rule.metered.remedy",
     QT_TRANSLATE_NOOP("messages", "Use another network, or allow metered ones under Rules.")},
    {"rule.network_hours",
     QT_TRANSLATE_NOOP("messages",
                       "You chose other hours for the network. The next begin at {0}.")},
    {"rule.network_hours.remedy",
     QT_TRANSLATE_NOOP("messages", "Change the hours under Rules, or choose 'always'.")},
    {"rule.network_hours_never",
     QT_TRANSLATE_NOOP("messages", "You chose no hours for the network.")},
    {"rule.network_hours_never.remedy", QT_TRANSLATE_NOOP("messages", "Choose hours under Rules.")},
    {"rule.offline", QT_TRANSLATE_NOOP("messages", "This computer is not connected to a network.")},
    {"rule.offline.remedy", QT_TRANSLATE_NOOP("messages", "Connect it. Shoal goes on by itself.")},
    {"rule.on_battery", QT_TRANSLATE_NOOP("messages", "This computer runs on battery.")},
    {"rule.on_battery.remedy",
     QT_TRANSLATE_NOOP("messages", "Plug it in, or allow work on battery under Rules.")},
    {"rule.owner_active", QT_TRANSLATE_NOOP("messages", "You used this computer {0} ago.")},
    {"rule.owner_active.remedy",
     QT_TRANSLATE_NOOP(
         "messages",
         "Work starts after {0} without input. Or allow work while the computer is in use.")},
    {"rule.owner_source_silent",
     QT_TRANSLATE_NOOP("messages",
                       "'{0}', which should tell whether somebody uses this computer, does not "
                       "answer. So it counts as in use.")},
    {"rule.owner_source_silent.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Choose 'auto' or another source under Rules, or choose 'always'.")},
    {"rule.owner_unknown",
     QT_TRANSLATE_NOOP(
         "messages", "Nothing tells whether somebody uses this computer, so it counts as in use.")},
    {"rule.owner_unknown.remedy",
     QT_TRANSLATE_NOOP("messages", "Choose 'always', or allow work while the computer is in use.")},
    {"rule.power_saver", QT_TRANSLATE_NOOP("messages", "This computer is saving power.")},
    {"rule.power_saver.remedy",
     QT_TRANSLATE_NOOP(
         "messages",
         "Choose another power profile, or allow work while saving power under Rules.")},
    {"rule.price",
     QT_TRANSLATE_NOOP("messages", "Electricity costs {0} a kilowatt-hour now. You allow {1}.")},
    {"rule.price.remedy",
     QT_TRANSLATE_NOOP(
         "messages", "Work starts when it is cheaper. The prices and the limit are under Rules.")},
    {"rule.program",
     QT_TRANSLATE_NOOP("messages",
                       "{0} is running, and you want it to have the computer to itself.")},
    {"rule.program.remedy", QT_TRANSLATE_NOOP("messages", "Work starts when {0} ends.")},
    {"rule.programs_unknown", QT_TRANSLATE_NOOP("messages",
                                                "Nothing tells whether one of the programs runs "
                                                "that shall have the computer to themselves.")},
    {"rule.programs_unknown.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Take the programs off the list under Rules to work without it.")},
    {"rule.sleeping",
     QT_TRANSLATE_NOOP("messages", "This computer is about to sleep or to shut down.")},
    {"rule.sleeping.remedy", QT_TRANSLATE_NOOP("messages", "Work goes on when it wakes up.")},
    {"rule.temperature", QT_TRANSLATE_NOOP("messages", "It is too hot: {0}.")},
    {"rule.temperature.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Work starts at {0}. Let it cool, or raise the limit under Rules.")},
    {"rule.temperature_unknown",
     QT_TRANSLATE_NOOP("messages",
                       "Nothing tells its temperature. You want it to stay under {0}.")},
    {"rule.temperature_unknown.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Set that limit to its default under Rules to work without it.")},
    {"rule.transfer_month",
     QT_TRANSLATE_NOOP("messages",
                       "Shoal sent and fetched {0} this month, which is all that you allow.")},
    {"rule.transfer_month.remedy",
     QT_TRANSLATE_NOOP("messages",
                       "Work starts with the next month, or when you allow more under Rules.")},
    {"sensor.cpu", QT_TRANSLATE_NOOP("messages", "The processor is at {0}.")},
    {"sensor.cpu_energy",
     QT_TRANSLATE_NOOP("messages", "The processor's energy counter can be read.")},
    {"sensor.disk", QT_TRANSLATE_NOOP("messages", "{0} are free on the disk that keeps shards.")},
    {"sensor.game_mode", QT_TRANSLATE_NOOP("messages", "A game has asked for GameMode.")},
    {"sensor.gpus", QT_TRANSLATE_NOOP("messages", "Graphics cards seen: {0}.")},
    {"sensor.gpus_none", QT_TRANSLATE_NOOP("messages", "There is no graphics card.")},
    {"sensor.gpus_temperature",
     QT_TRANSLATE_NOOP("messages", "Graphics cards seen: {0}. The hottest is at {1}.")},
    {"sensor.idle", QT_TRANSLATE_NOOP("messages", "Nobody touched this computer for {0}.")},
    {"sensor.idle_locked",
     QT_TRANSLATE_NOOP("messages", "Nobody touched this computer for {0}, and it is locked.")},
    {"sensor.inhibitors", QT_TRANSLATE_NOOP("messages", "{0} keeps the screen on: {1}")},
    {"sensor.inhibitors_none", QT_TRANSLATE_NOOP("messages", "No program keeps the screen on.")},
    {"sensor.load", QT_TRANSLATE_NOOP("messages", "Other programs use {0} of the processors.")},
    {"sensor.memory", QT_TRANSLATE_NOOP("messages", "{0} of memory are free.")},
    {"sensor.network_free", QT_TRANSLATE_NOOP("messages", "Online, and not metered.")},
    {"sensor.network_metered", QT_TRANSLATE_NOOP("messages", "Online, and metered.")},
    {"sensor.network_offline", QT_TRANSLATE_NOOP("messages", "Offline.")},
    {"sensor.network_online",
     QT_TRANSLATE_NOOP("messages", "Online. Nothing tells whether the network is metered.")},
    {"sensor.power_battery",
     QT_TRANSLATE_NOOP("messages", "On battery. Charge: {0}. Power profile: {1}.")},
    {"sensor.power_line",
     QT_TRANSLATE_NOOP("messages", "On line power. Battery charge: {0}. Power profile: {1}.")},
    {"sensor.programs", QT_TRANSLATE_NOOP("messages", "{0} runs.")},
    {"sensor.programs_none", QT_TRANSLATE_NOOP("messages", "No exclusive program runs.")},
    {"sensor.sleep_none", QT_TRANSLATE_NOOP("messages", "The computer stays awake.")},
    {"sensor.sleep_soon",
     QT_TRANSLATE_NOOP("messages", "The computer is about to sleep or to end.")},
    {"standing.denied",
     QT_TRANSLATE_NOOP("messages", "You allow none of the work that this coordinator has.")},
    {"standing.denied.remedy",
     QT_TRANSLATE_NOOP("messages", "Allow a kind of work under Coordinators.")},
    {"standing.device_failed",
     QT_TRANSLATE_NOOP("messages", "It does not stay up here, or its self-test failed.")},
    {"standing.draining",
     QT_TRANSLATE_NOOP("messages", "It ends what it has begun and gets nothing more.")},
    {"standing.leaving",
     QT_TRANSLATE_NOOP("messages", "You want it back in {0}: it gets only work that ends sooner.")},
    {"standing.model_too_large",
     QT_TRANSLATE_NOOP("messages", "No part of a model fits into the {0} that are free there.")},
    {"standing.no_model",
     QT_TRANSLATE_NOOP("messages", "This coordinator has published no model yet.")},
    {"standing.no_request", QT_TRANSLATE_NOOP("messages", "Ready. Nobody asks for work now.")},
    {"standing.no_worker", QT_TRANSLATE_NOOP("messages", "Its worker does not run.")},
    {"standing.not_exact",
     QT_TRANSLATE_NOOP("messages",
                       "Its results are not the same bits as those of other devices, which this "
                       "work needs.")},
    {"standing.others_work",
     QT_TRANSLATE_NOOP("messages", "Ready. Other devices do what is asked for now.")},
    {"standing.paused", QT_TRANSLATE_NOOP("messages", "Your rules keep it from working now.")},
    {"standing.starting", QT_TRANSLATE_NOOP("messages", "It starts, tests or measures itself.")},
    {"standing.stopping",
     QT_TRANSLATE_NOOP("messages", "This coordinator is about to stop and begins nothing new.")},
    {"trace.not_running", QT_TRANSLATE_NOOP("messages", "Shoal was not running.")},
    {"unit.accepted", QT_TRANSLATE_NOOP("messages", "Its results were taken.")},
    {"unit.failed", QT_TRANSLATE_NOOP("messages", "The device failed at it: {0}")},
    {"unit.left", QT_TRANSLATE_NOOP("messages", "You left its coordinator.")},
    {"unit.not_begun", QT_TRANSLATE_NOOP("messages", "It was given back before it was begun.")},
    {"unit.not_handed_again",
     QT_TRANSLATE_NOOP(
         "messages",
         "It was given back: the coordinator did not hand it out again after a pause.")},
    {"unit.not_needed",
     QT_TRANSLATE_NOOP("messages",
                       "Another computer was faster. It earns the same if the results agree.")},
    {"unit.not_stored",
     QT_TRANSLATE_NOOP(
         "messages", "What was computed of a job cannot be stored, so a crash would lose it: {0}")},
    {"unit.over", QT_TRANSLATE_NOOP("messages", "Its time was over before it was done.")},
    {"unit.paused_too_long",
     QT_TRANSLATE_NOOP("messages", "It was given back, as its device was needed for too long.")},
    {"unit.refused", QT_TRANSLATE_NOOP("messages", "It cannot be computed here: {0}")},
    {"unit.rejected", QT_TRANSLATE_NOOP("messages", "The coordinator rejected its results.")},
    {"unit.too_slow",
     QT_TRANSLATE_NOOP("messages", "It was given back: it takes this device too long.")},
    {"work.class_denied", QT_TRANSLATE_NOOP("messages", "You do not allow work of this kind.")},
    {"work.given_back", QT_TRANSLATE_NOOP("messages", "The coordinator took it back.")},
    {"work.owner_needs_device", QT_TRANSLATE_NOOP("messages", "The owner needs this device.")},
    {"work.silent", QT_TRANSLATE_NOOP("messages", "No step came for too long.")},
    {"working.idle", QT_TRANSLATE_NOOP("messages", "Ready. Work may come at any time.")},
    {"working.now", QT_TRANSLATE_NOOP("messages", "Working on {0}.")},
};

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string duration_text(Millis duration) {
  const int64_t seconds = std::abs(duration.count) / 1000;
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min";
  if (seconds < 48 * 3600) {
    const int64_t minutes = seconds / 60 % 60;
    return std::to_string(seconds / 3600) + " h" +
           (minutes == 0 ? "" : " " + std::to_string(minutes) + " min");
  }
  return std::to_string(seconds / 86'400) + " days";
}

std::string bytes_text(Bytes bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes.count);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return number(value, unit == 0 || value >= 100 ? 0 : 1) + " " + kUnits[unit];
}

struct InEnglish {
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(Millis duration) const { return duration_text(duration); }
  std::string operator()(Bytes bytes) const { return bytes_text(bytes); }
  std::string operator()(Celsius celsius) const { return number(celsius.value, 0) + " °C"; }
  std::string operator()(Watts watts) const { return number(watts.value, 0) + " W"; }
  std::string operator()(Percent percent) const { return number(percent.value, 0) + " %"; }
  std::string operator()(Count count) const { return std::to_string(count.value); }
  std::string operator()(WallTime time) const { return format_local_minute(time.at); }
  std::string operator()(KilowattHours energy) const { return number(energy.value, 2) + " kWh"; }
};

std::string cut_text(capnp::Text::Reader text) {
  return printable(
      std::string_view(text.cStr(), std::min<size_t>(text.size(), limits::kReasonBytesMax)));
}

}  // namespace

std::span<const MessageSpec> message_table() { return kTable; }

const MessageSpec* find_message(std::string_view code) {
  const auto found = std::ranges::lower_bound(kTable, code, {}, &MessageSpec::code);
  return found != std::end(kTable) && found->code == code ? &*found : nullptr;
}

std::string fill_places(std::string_view text, std::span<const std::string> parameters) {
  std::string filled;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 2 < text.size() && text[i + 2] == '}' && text[i + 1] >= '0' &&
        text[i + 1] <= '9') {
      const auto place = static_cast<size_t>(text[i + 1] - '0');
      if (place < parameters.size()) filled += parameters[place];
      i += 2;
    } else {
      filled += text[i];
    }
  }
  return filled;
}

std::string english(const MessageParameter& parameter) {
  return std::visit(InEnglish{}, parameter);
}

std::string english(const Message& message) {
  if (message.empty()) return "";
  std::vector<std::string> parameters;
  for (const MessageParameter& parameter : message.parameters) {
    parameters.push_back(english(parameter));
  }
  if (const MessageSpec* spec = find_message(message.code))
    return fill_places(spec->text, parameters);
  std::string text = message.code;
  for (const std::string& parameter : parameters) text += " " + parameter;
  return text;
}

void write_message(const Message& message, rpc::Message::Builder to) {
  to.setCode(message.code);
  auto parameters = to.initParameters(static_cast<uint32_t>(
      std::min<size_t>(message.parameters.size(), limits::kMessageParametersMax)));
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    auto out = parameters[i];
    const MessageParameter& in = message.parameters[i];
    if (const auto* text = std::get_if<std::string>(&in)) {
      out.setText(std::string(cut_utf8(*text, limits::kReasonBytesMax)));
    } else if (const auto* duration = std::get_if<Millis>(&in)) {
      out.setMilliseconds(duration->count);
    } else if (const auto* bytes = std::get_if<Bytes>(&in)) {
      out.setBytes(static_cast<uint64_t>(bytes->count));
    } else if (const auto* celsius = std::get_if<Celsius>(&in)) {
      out.setCelsius(celsius->value);
    } else if (const auto* watts = std::get_if<Watts>(&in)) {
      out.setWatts(watts->value);
    } else if (const auto* percent = std::get_if<Percent>(&in)) {
      out.setPercent(percent->value);
    } else if (const auto* count = std::get_if<Count>(&in)) {
      out.setCount(count->value);
    } else if (const auto* time = std::get_if<WallTime>(&in)) {
      out.setWallTime(time->at.count);
    } else {
      out.setKilowattHours(std::get<KilowattHours>(in).value);
    }
  }
}

Message read_message(rpc::Message::Reader from) {
  Message message;
  const auto code = from.getCode();
  message.code = printable(
      std::string_view(code.cStr(), std::min<size_t>(code.size(), limits::kNameBytesMax)));
  for (const auto in : from.getParameters()) {
    if (message.parameters.size() == limits::kMessageParametersMax) break;
    switch (in.which()) {
      case rpc::Message::Parameter::TEXT:
        message.parameters.push_back(cut_text(in.getText()));
        break;
      case rpc::Message::Parameter::MILLISECONDS:
        message.parameters.push_back(Millis{in.getMilliseconds()});
        break;
      case rpc::Message::Parameter::BYTES:
        message.parameters.push_back(
            Bytes{static_cast<int64_t>(std::min<uint64_t>(in.getBytes(), uint64_t{INT64_MAX}))});
        break;
      case rpc::Message::Parameter::CELSIUS:
        message.parameters.push_back(Celsius{in.getCelsius()});
        break;
      case rpc::Message::Parameter::WATTS:
        message.parameters.push_back(Watts{in.getWatts()});
        break;
      case rpc::Message::Parameter::PERCENT:
        message.parameters.push_back(Percent{in.getPercent()});
        break;
      case rpc::Message::Parameter::COUNT:
        message.parameters.push_back(Count{in.getCount()});
        break;
      case rpc::Message::Parameter::WALL_TIME:
        message.parameters.push_back(WallTime{Millis{in.getWallTime()}});
        break;
      case rpc::Message::Parameter::KILOWATT_HOURS:
        message.parameters.push_back(KilowattHours{in.getKilowattHours()});
        break;
      default: message.parameters.push_back(std::string()); break;  // Of a newer program.
    }
  }
  return message;
}

}  // namespace shoal
