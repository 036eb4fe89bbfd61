#pragma once
// One window per user: the first start keeps a lock that ends with the process, however it ends; a
// later start hands its order over to the first and ends.

#include <QLocalServer>
#include <QObject>
#include <QString>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "base/result.h"

namespace shoal::ui {

class SingleInstance : public QObject {
  Q_OBJECT

 public:
  enum class Outcome { kFirst, kHandedOver };

  // `folder`: the user's runtime folder.
  explicit SingleInstance(std::filesystem::path folder, QObject* parent = nullptr);

  // `order`: "open", "hidden", "pause", "resume" or "quit". `token` lets the first instance's
  // window come to the front (XDG activation). Waits at most three seconds for the first instance;
  // fails with kTimeout when it does not take the order.
  Result<Outcome> begin(const QString& order, const QString& token);

 Q_SIGNALS:
  void asked(const QString& order, const QString& token);

 private:
  Result<void> hand_over(const QString& order, const QString& token) const;
  void serve();

  std::filesystem::path folder_;
  std::optional<FileLock> lock_;
  QLocalServer server_;
};

}  // namespace shoal::ui
