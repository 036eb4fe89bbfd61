#include "schema/reasons.h"

// Qt's lupdate finds the sentences by this name; here they are English.
#define QT_TRANSLATE_NOOP(context, text) text

namespace shoal {
namespace {

constexpr std::string_view kTable[] = {
    // Of a connection to a coordinator.
    QT_TRANSLATE_NOOP("reasons", "the coordinator closed the connection"),
    QT_TRANSLATE_NOOP("reasons", "the name of {0} cannot be resolved"),
    QT_TRANSLATE_NOOP("reasons", "nothing listens at {0} (connection refused)"),
    QT_TRANSLATE_NOOP("reasons", "the network does not reach {0}"),
    QT_TRANSLATE_NOOP("reasons", "{0} did not answer within 15 seconds"),
    QT_TRANSLATE_NOOP("reasons", "{0} closed the connection; it may be no Shoal coordinator"),
    QT_TRANSLATE_NOOP("reasons", "{0}: the other side is no Shoal coordinator"),
    QT_TRANSLATE_NOOP(
        "reasons",
        "{0}: the coordinator's certificate does not match the pin of the attach URL (wrong pin): "
        "the URL is for another coordinator, or somebody sits in between"),
    QT_TRANSLATE_NOOP("reasons",
                      "the coordinator at {0} speaks version {1} of the protocol, this client {2}: "
                      "update the older of the two"),
    QT_TRANSLATE_NOOP("reasons",
                      "the client speaks protocol {0}, the coordinator {1}: the {2} is older and "
                      "must be updated"),
    QT_TRANSLATE_NOOP("reasons", "the login's signature does not match the host's key"),
    QT_TRANSLATE_NOOP("reasons", "this host is banned by the coordinator's administrator"),
    QT_TRANSLATE_NOOP("reasons",
                      "the account that this host belongs to is banned by the coordinator's "
                      "administrator"),
    QT_TRANSLATE_NOOP("reasons",
                      "this host is not known here, and its attach URL carries no invite; ask the "
                      "administrator for a new URL"),
    QT_TRANSLATE_NOOP("reasons",
                      "the attach URL's invite is not one of this coordinator; ask its "
                      "administrator for a new URL"),
    QT_TRANSLATE_NOOP("reasons",
                      "the attach URL's invite has expired; ask the administrator for a new URL"),
    QT_TRANSLATE_NOOP("reasons",
                      "the attach URL's invite has been used as often as it may be; ask the "
                      "administrator for a new URL"),
    QT_TRANSLATE_NOOP("reasons",
                      "the attach URL's invite belongs to an account that is banned by the "
                      "coordinator's administrator"),
    QT_TRANSLATE_NOOP("reasons",
                      "{0} signs receipts with another key than before; those that it gave could "
                      "not be checked with it"),
    // Of a sensor, and of those whom it asks.
    QT_TRANSLATE_NOOP("reasons", "it has not answered yet"),
    QT_TRANSLATE_NOOP("reasons", "it does not answer"),
    QT_TRANSLATE_NOOP("reasons", "it has told nothing for {0} s"),
    QT_TRANSLATE_NOOP("reasons", "it is being measured"),
    QT_TRANSLATE_NOOP("reasons", "the program that watches this computer ended: {0}"),
    QT_TRANSLATE_NOOP("reasons", "it closed its pipe"),
    QT_TRANSLATE_NOOP("reasons", "it wrote a line without an end"),
    QT_TRANSLATE_NOOP("reasons", "{0} has not answered for {1} s"),
    QT_TRANSLATE_NOOP("reasons", "{0} does not answer"),
    QT_TRANSLATE_NOOP("reasons", "{0} cannot be reached: {1}"),
    QT_TRANSLATE_NOOP("reasons", "{0} gave an answer that makes no sense"),
    QT_TRANSLATE_NOOP("reasons", "{0} is not running"),
    QT_TRANSLATE_NOOP("reasons", "{0} does not know what it was asked"),
    QT_TRANSLATE_NOOP("reasons", "{0} refuses to answer"),
    QT_TRANSLATE_NOOP("reasons", "{0} failed: {1}"),
    QT_TRANSLATE_NOOP("reasons", "there is no such thing as {0}"),
    QT_TRANSLATE_NOOP("reasons", "no time was left to ask {0}"),
    QT_TRANSLATE_NOOP("reasons", "the system bus"),
    QT_TRANSLATE_NOOP("reasons", "the session bus"),
    QT_TRANSLATE_NOOP("reasons", "the X server"),
    QT_TRANSLATE_NOOP("reasons", "the Wayland desktop"),
    QT_TRANSLATE_NOOP("reasons", "the NVIDIA driver"),
    QT_TRANSLATE_NOOP("reasons", "a graphics driver"),
    QT_TRANSLATE_NOOP("reasons",
                      "the system shows neither temperature nor energy of the processor"),
    QT_TRANSLATE_NOOP("reasons", "no folder for shards is known yet"),
    QT_TRANSLATE_NOOP("reasons", "the NVIDIA card is switched off to save power"),
    QT_TRANSLATE_NOOP("reasons", "the NVIDIA driver fails: {0}"),
    QT_TRANSLATE_NOOP("reasons", "NVIDIA's management library is not installed"),
    QT_TRANSLATE_NOOP("reasons", "nobody is logged in to a terminal"),
    QT_TRANSLATE_NOOP("reasons", "this Wayland desktop does not offer ext-idle-notify"),
    QT_TRANSLATE_NOOP("reasons", "this Wayland desktop has no keyboard or mouse"),
    QT_TRANSLATE_NOOP("reasons", "no Wayland desktop runs here"),
    QT_TRANSLATE_NOOP("reasons", "the Wayland desktop \"{0}\" cannot be reached"),
    QT_TRANSLATE_NOOP("reasons", "the X server does not tell its idle time"),
    QT_TRANSLATE_NOOP("reasons",
                      "this is a Wayland desktop, whose X server does not see all input"),
    QT_TRANSLATE_NOOP(
        "reasons",
        "no X server is named here (DISPLAY is not set). If you use one, run: systemctl --user "
        "import-environment DISPLAY XAUTHORITY, and start Shoal again"),
    QT_TRANSLATE_NOOP("reasons", "the X server is another computer's"),
    QT_TRANSLATE_NOOP("reasons", "the X server cannot be reached"),
    QT_TRANSLATE_NOOP("reasons", "the X server has no screen"),
    QT_TRANSLATE_NOOP("reasons", "the X server was lost"),
    QT_TRANSLATE_NOOP(
        "reasons", "the chosen source, {0}, cannot be used: {1}. Choose another one, or \"auto\""),
    QT_TRANSLATE_NOOP("reasons",
                      "there is no source called \"{0}\". Choose another one, or \"auto\""),
    QT_TRANSLATE_NOOP("reasons",
                      "nothing on this computer tells whether a program keeps the screen on"),
    QT_TRANSLATE_NOOP("reasons", "the login service lists inhibitors that make no sense"),
    QT_TRANSLATE_NOOP("reasons", "GNOME's session manager answers what makes no sense"),
    QT_TRANSLATE_NOOP("reasons", "the power manager answers what makes no sense"),
    QT_TRANSLATE_NOOP("reasons", "the system does not tell how busy its processors are"),
    QT_TRANSLATE_NOOP("reasons", "the system does not tell how much memory is free"),
    QT_TRANSLATE_NOOP("reasons", "the system does not tell which programs run"),
    QT_TRANSLATE_NOOP("reasons",
                      "neither NetworkManager nor the system's routes tell whether it is online"),
    QT_TRANSLATE_NOOP("reasons", "the power profile is not known: {0}"),
    QT_TRANSLATE_NOOP("reasons", "nothing here says when the computer is about to sleep: {0}"),
    QT_TRANSLATE_NOOP("reasons", "the computer may sleep too early: {0}"),
    QT_TRANSLATE_NOOP("reasons", "the login service gave nothing to hold it by"),
    // Of a device's worker.
    QT_TRANSLATE_NOOP("reasons", "its worker is starting"),
    QT_TRANSLATE_NOOP("reasons", "its worker does not stay up"),
    QT_TRANSLATE_NOOP("reasons", "its worker gave no sign of life for {0}"),
    QT_TRANSLATE_NOOP("reasons", "its worker ended with {0}"),
    QT_TRANSLATE_NOOP("reasons", "its worker gave a public key of a wrong size"),
    QT_TRANSLATE_NOOP("reasons", "its worker opened device {0} instead"),
};

// What stands at the places of `sentence` in `text`; none: it is another text.
std::optional<std::vector<std::string>> places_in(std::string_view text,
                                                  std::string_view sentence) {
  std::vector<std::string> places;
  while (true) {
    const size_t place = sentence.find('{');
    const std::string_view before = sentence.substr(0, place);
    if (!text.starts_with(before)) return {};
    text.remove_prefix(before.size());
    if (place == std::string_view::npos) {
      if (!text.empty()) return {};
      return places;
    }
    sentence.remove_prefix(sentence.find('}', place) + 1);
    const std::string_view after = sentence.substr(0, sentence.find('{'));
    // The last one takes all that is left before the end.
    const bool is_last = after.size() == sentence.size();
    if (is_last && !text.ends_with(after)) return {};
    const size_t end = is_last ? text.size() - after.size() : text.find(after, 1);
    if (end == 0 || end == std::string_view::npos) return {};
    places.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace

std::span<const std::string_view> reason_table() { return kTable; }

std::optional<KnownReason> find_reason(std::string_view text) {
  std::optional<KnownReason> best;
  size_t best_size = 0;
  for (const std::string_view sentence : kTable) {
    std::optional<std::vector<std::string>> places = places_in(text, sentence);
    // The one with the most words of its own says the most.
    if (!places || sentence.size() - 3 * places->size() <= best_size) continue;
    best_size = sentence.size() - 3 * places->size();
    best = KnownReason{sentence, std::move(*places)};
  }
  return best;
}

}  // namespace shoal
