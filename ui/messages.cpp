#include "ui/messages.h"

#include <QCoreApplication>
#include <QStringList>

#include "base/clock.h"
#include "base/text.h"
#include "schema/reasons.h"
#include "ui/format.h"

namespace shoal::ui {
namespace {

struct ForPeople {
  QString operator()(const std::string& text) const { return problem_text(text); }
  QString operator()(Millis duration) const { return format_duration(duration); }
  QString operator()(Bytes bytes) const { return format_bytes(static_cast<double>(bytes.count)); }
  QString operator()(Celsius celsius) const { return format_temperature(celsius.value); }
  QString operator()(Watts watts) const { return format_watts(watts.value); }
  QString operator()(Percent percent) const { return format_percent(percent.value / 100); }
  QString operator()(Count count) const { return format_count(static_cast<double>(count.value)); }
  QString operator()(WallTime time) const { return format_when(time.at, SystemClock().now_wall()); }
  QString operator()(KilowattHours energy) const { return format_energy(energy.value); }
};

}  // namespace

QString sentence(const Message& message) {
  if (message.empty()) return {};
  std::vector<std::string> parameters;
  for (const MessageParameter& parameter : message.parameters) {
    parameters.push_back(std::visit(ForPeople{}, parameter).toStdString());
  }
  const MessageSpec* spec = find_message(message.code);
  if (spec == nullptr) {
    QStringList words{QString::fromStdString(message.code)};
    for (const std::string& parameter : parameters) words += QString::fromStdString(parameter);
    return words.join(' ');
  }
  const std::string english(spec->text);
  const QString text = QCoreApplication::translate("messages", english.c_str());
  return QString::fromStdString(fill_places(text.toStdString(), parameters));
}

QString problem_text(const std::string& text) {
  const std::optional<KnownReason> known = find_reason(text);
  if (!known) return QString::fromStdString(printable(text));
  std::vector<std::string> places;
  // One may say why another is so. Each is shorter, so this ends.
  for (const std::string& place : known->places)
    places.push_back(problem_text(place).toStdString());
  const std::string english(known->sentence);
  const QString said = QCoreApplication::translate("reasons", english.c_str());
  return QString::fromStdString(fill_places(said.toStdString(), places));
}
QString problem_text(capnp::Text::Reader text) {
  return problem_text(std::string(text.cStr(), text.size()));
}

QString sentence(rpc::Message::Reader message) { return sentence(read_message(message)); }

QString sentence(const Error& error) {
  // One in lines of its own keeps them.
  QString text = find_reason(error.message) ? problem_text(error.message)
                                            : QString::fromStdString(error.message);
  if (text.isEmpty()) return text;
  text[0] = text[0].toUpper();
  if (!text.endsWith('.') && !text.endsWith('!') && !text.endsWith('?')) text += '.';
  return text;
}

}  // namespace shoal::ui
