#include "ui/guide.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/client_settings.h"
#include "ui/format.h"
#include "ui/messages.h"
#include "ui/style.h"
#include "ui/tables.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/offer_card.h"

namespace shoal::ui {
namespace {

using Agent = rpc::Agent::Client;

constexpr int kWidth = 640;
constexpr Millis kAttachMax{60'000};
constexpr Millis kMeasureMax{180'000};

void clear(QVBoxLayout& layout) {
  while (QLayoutItem* item = layout.takeAt(0)) {
    const std::unique_ptr<QLayoutItem> owned(item);
    if (item->widget() != nullptr) item->widget()->deleteLater();
  }
}

}  // namespace

Guide::Guide(AgentLink& link, ClientSettings& settings, const Autostart& autostart, QWidget* parent)
    : QWidget(parent), link_(link), settings_(settings), autostart_(autostart) {
  auto* column = new QVBoxLayout;
  column->setSpacing(kSpaceLarge);
  set_text_role(place_, TextRole::kQuiet);
  set_text_role(title_, TextRole::kTitle);
  title_.setWordWrap(true);
  column->addStretch(1);
  column->addWidget(&place_);
  column->addWidget(&title_);
  column->addWidget(&problem_);
  for (QWidget* step : {make_join(), make_terms(), make_measure(), make_devices(), make_done()}) {
    steps_.addWidget(step);
  }
  column->addWidget(&steps_, 6);
  auto* busy = new QHBoxLayout;
  busy_bar_.setRange(0, 0);
  busy_bar_.setTextVisible(false);
  busy_bar_.setMaximumWidth(120);
  busy_bar_.setAccessibleName(tr("Waiting for an answer"));
  busy->addWidget(&busy_bar_);
  busy->addWidget(&busy_text_, 1);
  column->addLayout(busy);
  auto* buttons = new QHBoxLayout;
  skip_.setText(tr("&Not now"));
  skip_.setToolTip(tr("Look around first. You can join under Coordinators at any time."));
  back_.setText(tr("&Back"));
  set_prominent(next_);
  next_.setDefault(true);
  buttons->addWidget(&skip_);
  buttons->addStretch();
  buttons->addWidget(&back_);
  buttons->addWidget(&next_);
  column->addLayout(buttons);
  column->addStretch(1);

  auto* middle = new QWidget(this);
  middle->setLayout(column);
  middle->setMaximumWidth(kWidth);
  middle->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  auto* row = new QHBoxLayout(this);
  row->addStretch(1);
  row->addWidget(middle, 8);
  row->addStretch(1);

  connect(&next_, &QPushButton::clicked, this, &Guide::next);
  connect(&back_, &QPushButton::clicked, this, &Guide::back);
  connect(&skip_, &QPushButton::clicked, this, &Guide::skip);
  connect(&url_, &QLineEdit::returnPressed, this, &Guide::next);
  show_busy(false);
}

QWidget* Guide::make_join() {
  auto* page = new QWidget(this);
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* text = make_text(page);
  text->setText(
      tr("A coordinator hands out the work. Whoever runs it gave you a URL that begins with "
         "shoal:// and holds your invitation. Put it in here."));
  url_.setPlaceholderText("shoal://host:port/?pin=…&invite=…");
  url_.setAccessibleName(tr("The coordinator's URL"));
  url_.setClearButtonEnabled(true);
  for (auto* button : url_.findChildren<QToolButton*>()) {
    button->setAccessibleName(tr("Clear the URL"));
  }
  auto* note = make_text(page);
  set_text_role(*note, TextRole::kQuiet);
  note->setText(
      tr("The URL also holds the coordinator's key, so nobody can put himself in between. Nothing "
         "is sent before you have seen what the coordinator asks."));
  layout->addWidget(text);
  layout->addWidget(&url_);
  layout->addWidget(note);
  layout->addStretch();
  return page;
}

QWidget* Guide::make_terms() {
  auto* page = new Scroller(this);
  page->body()->setContentsMargins(0, 0, kSpace, 0);
  operator_ = make_text(page);
  page->body()->addWidget(operator_);
  terms_note_ = make_text(page);
  set_text_role(*terms_note_, TextRole::kQuiet);
  page->body()->addWidget(terms_note_);
  offers_ground_ = new Card(page);
  offers_layout_ = new QVBoxLayout;
  offers_layout_->setSpacing(kSpace);
  offers_ground_->body()->addLayout(offers_layout_);
  page->body()->addWidget(offers_ground_);
  page->body()->addStretch();
  return page;
}

QWidget* Guide::make_measure() {
  auto* page = new QWidget(this);
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* text = make_text(page);
  text->setText(tr(
      "Shoal now checks that each device computes the very same bits as all others, and how fast "
      "it is. This takes less than a minute for each."));
  measure_text_ = make_text(page);
  measure_bar_.setAccessibleName(tr("Progress of the measurement"));
  layout->addWidget(text);
  layout->addWidget(&measure_bar_);
  layout->addWidget(measure_text_);
  layout->addStretch();
  return page;
}

QWidget* Guide::make_devices() {
  auto* page = new Scroller(this);
  page->body()->setContentsMargins(0, 0, kSpace, 0);
  auto* text = make_text(page);
  text->setText(tr(
      "Which devices do you lend? Shoal stops at once when you come back, so that you never wait "
      "for your own computer."));
  page->body()->addWidget(text);
  devices_layout_ = new QVBoxLayout;
  devices_layout_->setSpacing(kSpace);
  page->body()->addLayout(devices_layout_);
  page->body()->addStretch();
  return page;
}

QWidget* Guide::make_done() {
  auto* page = new QWidget(this);
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  done_text_ = make_text(page);
  autostart_box_.setText(tr("Start Shoal when I log in"));
  layout->addWidget(done_text_);
  layout->addWidget(&autostart_box_);
  layout->addStretch();
  return page;
}

void Guide::begin() {
  problem_.hide();
  if (url_.text().isEmpty()) {
    // Whoever copied the URL from a letter need not put it in.
    const QString copied = QApplication::clipboard()->text().trimmed();
    if (copied.startsWith("shoal://") && copied.size() < 1'024) url_.setText(copied);
  }
  go(Step::kJoin);
}

void Guide::go(Step step) {
  step_ = step;
  show_busy(false);
  steps_.setCurrentIndex(static_cast<int>(step));
  place_.setText(tr("Step %1 of 5").arg(static_cast<int>(step) + 1));
  back_.setVisible(step == Step::kTerms);
  skip_.setVisible(step == Step::kJoin || step == Step::kMeasure);
  skip_.setText(step == Step::kMeasure ? tr("&Later") : tr("&Not now"));
  switch (step) {
    case Step::kJoin:
      title_.setText(tr("Join a coordinator"));
      next_.setText(tr("Show what it asks"));
      url_.setFocus();
      url_.selectAll();
      break;
    case Step::kTerms:
      next_.setText(tr("&Join"));
      next_.setFocus();
      break;
    case Step::kMeasure:
      title_.setText(tr("Measure this computer"));
      next_.setText(tr("Next"));
      to_measure_.clear();
      measured_ = 0;
      if (link_.snapshot() != nullptr) {
        for (const auto device : link_.snapshot()->reader().getDevices()) {
          if (device.getLent() && device.getReport().getBenchmark().getMeasuredAtMs() == 0) {
            to_measure_.emplace_back(device.getReport().getInfo().getId().cStr());
          }
        }
      }
      measure_next();
      break;
    case Step::kDevices:
      title_.setText(tr("Choose devices"));
      next_.setText(tr("Next"));
      show_devices();
      next_.setFocus();
      break;
    case Step::kDone:
      title_.setText(tr("That is all"));
      next_.setText(tr("&Finish"));
      autostart_box_.setChecked(true);
      done_text_->setText(tr(
          "Shoal works when your rules allow it: at first while nobody uses this computer. The "
          "Overview says at any time whether it works and why. Pause it there, or in the tray."));
      next_.setFocus();
      break;
  }
}

void Guide::show_busy(bool busy, const QString& text) {
  busy_ = busy;
  busy_bar_.setVisible(busy);
  busy_text_.setVisible(busy);
  busy_text_.setText(text);
  next_.setEnabled(!busy);
  url_.setReadOnly(busy);
}

void Guide::next() {
  if (busy_) return;
  problem_.hide();
  switch (step_) {
    case Step::kJoin: preview(); break;
    case Step::kTerms: attach(); break;
    case Step::kMeasure: go(Step::kDevices); break;
    case Step::kDevices:
      for (const Lent& lent : lent_) {
        link_.call<&Agent::setDeviceLentRequest>(
            this,
            [&](auto params) {
              params.setDeviceId(lent.id);
              params.setLent(lent.box->isChecked());
            },
            [this](AnswerOf<&Agent::setDeviceLentRequest> answer) {
              if (!answer.ok()) problem_.show_error(answer.error());
            });
      }
      go(Step::kDone);
      break;
    case Step::kDone: finish(); break;
  }
}

void Guide::back() {
  problem_.hide();
  if (step_ == Step::kTerms) go(Step::kJoin);
}

// Joining later ends the guide; measuring later does not: devices are still to be chosen.
void Guide::skip() {
  if (step_ != Step::kMeasure) {
    Q_EMIT finished();
    return;
  }
  problem_.hide();
  go(Step::kDevices);
}

void Guide::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
    next();
  } else if (event->key() == Qt::Key_Escape && back_.isVisible()) {
    back();
  } else {
    QWidget::keyPressEvent(event);
  }
}

void Guide::preview() {
  const QString url = url_.text().trimmed();
  if (url.isEmpty()) {
    problem_.show_text(BannerKind::kProblem, tr("Put in the URL that you were given."));
    url_.setFocus();
    return;
  }
  show_busy(true, tr("Asking the coordinator…"));
  link_.call<&Agent::previewAttachRequest>(
      this, [&](auto params) { params.setUrl(url.toStdString()); },
      [this](AnswerOf<&Agent::previewAttachRequest> answer) {
        show_busy(false);
        if (!answer.ok()) return problem_.show_error(answer.error());
        show_card(answer.value()->reader().getCard());
        go(Step::kTerms);
      },
      kAttachMax);
}

void Guide::show_card(rpc::CoordinatorCard::Reader card) {
  title_.setText(tr("What %1 asks").arg(text_of(card.getName())));
  operator_->setText(text_of(card.getOperator()));
  operator_->setVisible(card.getOperator().size() > 0);
  clear(*offers_layout_);
  offers_.clear();
  const QString power = power_text(link_.snapshot(), settings_);
  for (const auto offer : card.getOffers()) {
    auto* offer_card = new OfferCard(offer.getJobClass(), this);
    offer_card->set_offer(offer, power);
    offers_layout_->addWidget(offer_card);
    offers_.push_back(offer_card);
  }
  offers_ground_->setVisible(!offers_.empty());
  terms_note_->setText(
      offers_.empty()
          ? tr("It has no work now. You can join and judge each kind of work when it comes, under "
               "Coordinators.")
          : tr("These kinds of work may come. Deny what you do not want; you can change it "
               "later under Coordinators."));
}

void Guide::attach() {
  show_busy(true, tr("Joining…"));
  link_.call<&Agent::attachRequest>(
      this,
      [&](auto params) {
        params.setUrl(url_.text().trimmed().toStdString());
        write_denied(offers_, params);
      },
      [this](AnswerOf<&Agent::attachRequest> answer) {
        show_busy(false);
        if (!answer.ok()) return problem_.show_error(answer.error());
        go(Step::kMeasure);
      },
      kAttachMax);
}

void Guide::measure_next() {
  measure_bar_.setRange(0, std::max<int>(1, static_cast<int>(to_measure_.size())));
  measure_bar_.setValue(static_cast<int>(measured_));
  if (measured_ >= to_measure_.size()) {
    measure_bar_.setValue(measure_bar_.maximum());
    measure_text_->setText(tr("All devices that you lend are measured."));
    next_.setEnabled(true);
    skip_.hide();
    next_.setFocus();
    return;
  }
  next_.setEnabled(false);
  const std::string id = to_measure_[measured_];
  QString name = QString::fromStdString(id);
  // None while the client is away.
  const auto snapshot = link_.snapshot();
  for (uint32_t i = 0; snapshot != nullptr && i < snapshot->reader().getDevices().size(); ++i) {
    const auto device = snapshot->reader().getDevices()[i];
    if (device.getReport().getInfo().getId() == id.c_str()) {
      name = text_of(device.getReport().getInfo().getName());
    }
  }
  measure_text_->setText(
      tr("Measuring %1 (%2 of %3)…").arg(name).arg(measured_ + 1).arg(to_measure_.size()));
  link_.call<&Agent::benchmarkRequest>(
      this, [&](auto params) { params.setDeviceId(id); },
      [this, name](AnswerOf<&Agent::benchmarkRequest> answer) {
        if (step_ != Step::kMeasure) return;
        if (!answer.ok()) {
          problem_.show_text(
              BannerKind::kWarning,
              tr("%1 could not be measured: %2").arg(name, sentence(answer.error())));
        }
        ++measured_;
        measure_next();
      },
      kMeasureMax);
}

void Guide::show_devices() {
  clear(*devices_layout_);
  lent_.clear();
  if (link_.snapshot() == nullptr) return;
  for (const auto device : link_.snapshot()->reader().getDevices()) {
    const auto report = device.getReport();
    auto* ground = new Card(this);
    auto* box = new QCheckBox(text_of(report.getInfo().getName()), ground);
    box->setChecked(device.getLent());
    auto* text = make_text(ground);
    set_text_role(*text, TextRole::kQuiet);
    const auto bench = report.getBenchmark();
    if (bench.getMeasuredAtMs() == 0) {
      text->setText(tr("Not measured yet. %1 of memory.")
                        .arg(format_bytes(static_cast<double>(report.getInfo().getMemoryBytes()))));
    } else if (!report.getSelfTest().getExact()) {
      text->setText(tr("It computes other bits than the rest, so it gets no work."));
    } else {
      text->setText(tr("%1 tokens a second for one block of a model; exact. %2 of memory.")
                        .arg(format_count(bench.getDecodeRowsPerSecond()),
                             format_bytes(static_cast<double>(report.getInfo().getMemoryBytes()))));
    }
    ground->body()->addWidget(box);
    ground->body()->addWidget(text);
    devices_layout_->addWidget(ground);
    lent_.push_back({box, report.getInfo().getId().cStr()});
  }
}

void Guide::finish() {
  const Result<void> kept = autostart_.set_enabled(autostart_box_.isChecked());
  if (!kept.ok()) return problem_.show_error(kept.error());
  Q_EMIT finished();
}

}  // namespace shoal::ui
