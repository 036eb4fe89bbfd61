#pragma once
// One class of work in plain words: what it is for, who can read its data, what it costs; and the
// owner's answer. The guide and the Coordinators page show the same card.

#include <QFrame>
#include <vector>

#include "schema/coordinator.capnp.h"
#include "ui/snapshot.h"

class QLabel;
class QRadioButton;

namespace shoal::ui {

class ClientSettings;

// What this computer draws while it works, as far as anything tells.
QString power_text(const SnapshotPtr& snapshot, const ClientSettings& settings);

class OfferCard : public QFrame {
  Q_OBJECT

 public:
  explicit OfferCard(rpc::JobClass::Reader job_class, QWidget* parent = nullptr);

  bool is_of(rpc::JobClass::Reader job_class) const;
  void write_class(rpc::JobClass::Builder to) const;
  // What is offered now. Answer and focus stay.
  void set_offer(rpc::CoordinatorCard::Offer::Reader offer, const QString& power);
  bool allowed() const;
  // What the client says. Left alone while the owner's own answer is under way.
  void set_allowed(bool allowed);
  void begin_answer() { answering_ = true; }
  void end_answer(const QString& problem);

 Q_SIGNALS:
  void decided(bool allowed);

 private:
  std::string kind_, model_;
  rpc::Privacy privacy_;
  bool answering_ = false;
  QLabel *purpose_, *cost_, *problem_;
  QRadioButton *allow_, *deny_;
};

// What an attachment is to deny beforehand: the classes that the cards do not allow.
void write_denied(const std::vector<OfferCard*>& cards, rpc::Agent::AttachParams::Builder to);

}  // namespace shoal::ui
