#pragma once
// The first-run guide: join by URL, see what the coordinator asks, measure, choose devices, done.
// Five short steps, each possible by keyboard alone.

#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QStackedWidget>
#include <QWidget>
#include <memory>
#include <vector>

#include "ui/agent_link.h"
#include "ui/autostart.h"
#include "ui/banner.h"

class QVBoxLayout;

namespace shoal::ui {

class Card;
class ClientSettings;
class OfferCard;

class Guide : public QWidget {
  Q_OBJECT

 public:
  enum class Step { kJoin, kTerms, kMeasure, kDevices, kDone };

  // All of them outlive the guide.
  Guide(AgentLink& link, ClientSettings& settings, const Autostart& autostart,
        QWidget* parent = nullptr);

  void begin();
  Step step() const { return step_; }

 Q_SIGNALS:
  void finished();

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QWidget* make_join();
  QWidget* make_terms();
  QWidget* make_measure();
  QWidget* make_devices();
  QWidget* make_done();

  void go(Step step);
  void next();
  void back();
  void skip();
  void preview();
  void show_card(rpc::CoordinatorCard::Reader card);
  void attach();
  void measure_next();
  void show_devices();
  void finish();
  void show_busy(bool busy, const QString& text = {});

  struct Lent {
    QCheckBox* box;
    std::string id;
  };

  AgentLink& link_;
  ClientSettings& settings_;
  const Autostart& autostart_;
  Step step_ = Step::kJoin;
  bool busy_ = false;

  QLabel title_, place_;
  QStackedWidget steps_;
  Banner problem_;
  QPushButton back_, next_, skip_;
  QLabel busy_text_;
  QProgressBar busy_bar_;

  QLineEdit url_;
  QLabel *operator_, *terms_note_;
  Card* offers_ground_;
  QVBoxLayout* offers_layout_;
  std::vector<OfferCard*> offers_;
  QLabel* measure_text_;
  QProgressBar measure_bar_;
  std::vector<std::string> to_measure_;
  size_t measured_ = 0;
  QVBoxLayout* devices_layout_;
  std::vector<Lent> lent_;
  QLabel* done_text_;
  QCheckBox autostart_box_;
};

}  // namespace shoal::ui
