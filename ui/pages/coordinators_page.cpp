// Who this computer works for: joining and leaving, what each coordinator asks, what the owner
// allows, and why there is no work.

#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPointer>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/agent_link.h"
#include "ui/client_settings.h"
#include "ui/format.h"
#include "ui/messages.h"
#include "ui/pages/content_page.h"
#include "ui/tables.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/data_table.h"
#include "ui/widgets/offer_card.h"

namespace shoal::ui {
namespace {

constexpr Millis kContactMax{60'000};

class CoordinatorsPage final : public ContentPage {
  Q_OBJECT

 public:
  CoordinatorsPage(const PageContext& context, QWidget* parent) : ContentPage(context, parent) {
    Scroller* const scroller = make_scroller();
    scroller->body()->addWidget(make_list());
    scroller->body()->addWidget(make_standing());
    scroller->body()->addWidget(make_consent());
    scroller->body()->addWidget(make_join());
    scroller->body()->addStretch();
  }

  void show_snapshot(const SnapshotPtr& snapshot) override {
    const bool came = snapshot_ == nullptr;
    snapshot_ = snapshot;
    show_content();
    if (came) client_settings().refresh();
    const Millis now = clock().now_wall();
    std::vector<ConnectionRow> rows;
    for (const auto connection : snapshot->reader().getConnections())
      rows.push_back({connection, now});
    const bool any = !rows.empty();
    model_->set_rows(snapshot, std::move(rows));
    list_card_->setVisible(any);
    join_about_->setText((any ? QString() : tr("This computer works for nobody yet.") + ' ') +
                         tr("Paste the address that a coordinator's administrator gave you. "
                            "Nothing is joined before "
                            "you have seen what it asks."));
    if (table_->selected_row() < 0 && any)
      table_->select_identity(text_of(model_->rows()[0].connection.getUrl()));
    show_selected();
  }

  void show_disconnected() override {
    snapshot_ = nullptr;
    ContentPage::show_disconnected();
  }

  void show_detail(const QString& detail) override {
    if (detail == QLatin1String("attach")) {
      url_->setFocus();
    } else if (detail.startsWith(QLatin1String("shoal://")) && detail.contains('?')) {
      url_->setText(detail);
      look();
    } else {
      table_->select_identity(detail);
    }
  }

 private:
  QWidget* make_list() {
    list_card_ = new Card(this);
    list_card_->set_title(tr("Joined"));
    model_ = new TableModel<ConnectionRow>(
        connection_columns(),
        [](const ConnectionRow& row) { return text_of(row.connection.getUrl()); }, this);
    table_ = new DataTable(model_, QStringLiteral("coordinators"), tr("Coordinators"), list_card_);
    table_->set_empty_text(
        tr("This computer works for nobody yet. Join a coordinator below with the address that "
           "you were given."));
    table_->set_rows_shown(3);
    table_->view()->setSelectionMode(QAbstractItemView::SingleSelection);
    list_card_->body()->addWidget(table_);
    connect(table_, &DataTable::selection_changed, this, &CoordinatorsPage::show_selected);
    return list_card_;
  }

  QWidget* make_standing() {
    standing_card_ = new Card(this);
    about_ = make_text(standing_card_);
    state_ = make_text(standing_card_);
    set_text_role(*about_, TextRole::kQuiet);
    standing_model_ = new TableModel<StandingRow>(
        standing_columns(),
        [](const StandingRow& row) { return text_of(row.device.getDeviceId()); }, this);
    standing_table_ =
        new DataTable(standing_model_, QStringLiteral("standing"),
                      tr("Your devices there, and why they get no work"), standing_card_);
    standing_table_->set_empty_text(tr("It has not said anything about your devices yet."));
    standing_table_->set_rows_shown(3);
    standing_table_->show_bar(false);
    leave_ = new QPushButton(tr("&Leave…"), standing_card_);
    leave_->setObjectName(QStringLiteral("leave"));
    leave_->setAutoDefault(false);
    leave_problem_ = make_problem(standing_card_);
    auto* row = new QHBoxLayout;
    row->addWidget(leave_problem_, 1);
    row->addStretch();
    row->addWidget(leave_);
    standing_card_->body()->addWidget(state_);
    standing_card_->body()->addWidget(about_);
    standing_card_->body()->addWidget(standing_table_);
    standing_card_->body()->addLayout(row);
    connect(leave_, &QPushButton::clicked, this, &CoordinatorsPage::ask_leave);
    return standing_card_;
  }

  QWidget* make_consent() {
    consent_card_ = new Card(this);
    consent_card_->set_title(tr("What may be computed here"));
    auto* about = make_text(consent_card_);
    about->setText(
        tr("Each kind of work is yours to allow or to deny. Work that you deny is given back."));
    set_text_role(*about, TextRole::kQuiet);
    consent_card_->body()->addWidget(about);
    consents_ = new QVBoxLayout;
    consents_->setSpacing(kSpace);
    consent_card_->body()->addLayout(consents_);
    return consent_card_;
  }

  QWidget* make_join() {
    auto* card = new Card(this);
    card->set_title(tr("Join a coordinator"));
    join_about_ = make_text(card);
    set_text_role(*join_about_, TextRole::kQuiet);
    url_ = new QLineEdit(card);
    url_->setObjectName(QStringLiteral("url"));
    url_->setPlaceholderText(QStringLiteral("shoal://host:7410/?pin=…"));
    url_->setAccessibleName(tr("Address of a coordinator"));
    url_->setClearButtonEnabled(true);
    look_ = new QPushButton(tr("See what it &asks"), card);
    look_->setObjectName(QStringLiteral("look"));
    look_->setAutoDefault(false);
    look_->setEnabled(false);
    join_problem_ = make_problem(card);
    join_problem_->setObjectName(QStringLiteral("join_problem"));
    preview_ = new QWidget(card);
    preview_layout_ = new QVBoxLayout(preview_);
    preview_layout_->setContentsMargins(0, 0, 0, 0);
    preview_->hide();
    auto* row = new QHBoxLayout;
    row->addWidget(url_, 1);
    row->addWidget(look_);
    card->body()->addWidget(join_about_);
    card->body()->addLayout(row);
    card->body()->addWidget(join_problem_);
    card->body()->addWidget(preview_);
    connect(url_, &QLineEdit::textChanged, this, [this](const QString& text) {
      look_->setEnabled(!text.trimmed().isEmpty());
      set_problem(*join_problem_, {});
      clear_preview();
    });
    connect(url_, &QLineEdit::returnPressed, this, &CoordinatorsPage::look);
    connect(look_, &QPushButton::clicked, this, &CoordinatorsPage::look);
    return card;
  }

  const ConnectionRow* selected() const {
    const int row = table_->selected_row();
    return row < 0 ? nullptr : &model_->rows()[static_cast<size_t>(row)];
  }

  void show_selected() {
    const ConnectionRow* const row = selected();
    standing_card_->setVisible(row != nullptr);
    consent_card_->setVisible(row != nullptr && row->connection.getCard().getOffers().size() > 0);
    if (row == nullptr || snapshot_ == nullptr) return;
    const auto connection = row->connection;
    const QString name = text_of(connection.getName());
    if (shown_ != text_of(connection.getUrl())) set_problem(*leave_problem_, {});
    shown_ = text_of(connection.getUrl());
    standing_card_->set_title(name.isEmpty() ? shown_ : name);
    leave_->setAccessibleName(tr("Leave %1").arg(name));

    const QString state = text_of(connection.getState());
    if (state == QLatin1String("connected")) {
      QString text = tr("Connected since %1.")
                         .arg(format_when(Millis{connection.getConnectedSinceMs()}, row->now));
      const QString belongings = belongings_of(connection.getStanding());
      if (!belongings.isEmpty()) text += ' ' + tr("This computer belongs to %1.").arg(belongings);
      state_->setText(text);
    } else {
      QString text = state_word(state);
      const QString reason = problem_text(connection.getReason());
      if (!reason.isEmpty()) text = tr("%1: %2").arg(text, reason);
      if (connection.getRetryInMs() > 0)
        text += ' ' + tr("(next in %1)").arg(format_duration(Millis{connection.getRetryInMs()}));
      state_->setText(text);
    }
    const QString about = text_of(connection.getCard().getOperator());
    about_->setText(about);
    about_->setVisible(!about.isEmpty());

    const DeviceNames names(snapshot_->reader());
    std::vector<StandingRow> standings;
    for (const auto device : connection.getStanding().getDevices())
      standings.push_back({name, device, names.name(device.getDeviceId()), row->now});
    standing_model_->set_rows(snapshot_, std::move(standings));
    show_consents(connection);
  }

  static QString belongings_of(rpc::HostStanding::Reader standing) {
    QStringList words;
    const auto add = [&words](capnp::Text::Reader name, const QString& word) {
      if (name.size() > 0) words += word.arg(text_of(name));
    };
    add(standing.getAccount(), tr("account %1"));
    add(standing.getTeam(), tr("team %1"));
    add(standing.getGroup(), tr("group %1"));
    return words.join(QStringLiteral(", "));
  }

  // Cards change in place: figures do at every snapshot, and nobody's focus may go with them.
  void show_consents(rpc::Snapshot::Connection::Reader connection) {
    const auto offers = connection.getCard().getOffers();
    const bool same = cards_of_ == shown_ && offer_cards_.size() == offers.size() &&
                      std::equal(offer_cards_.begin(), offer_cards_.end(), offers.begin(),
                                 [](const OfferCard* card, const auto& offer) {
                                   return card->is_of(offer.getJobClass());
                                 });
    if (!same) {
      cards_of_ = shown_;
      qDeleteAll(offer_cards_);
      offer_cards_.clear();
      for (const auto offer : offers) {
        auto* card = new OfferCard(offer.getJobClass(), consent_card_);
        offer_cards_.push_back(card);
        consents_->addWidget(card);
        connect(card, &OfferCard::decided, this,
                [this, card](bool allowed) { set_consent(card, allowed); });
      }
    }
    const QString power = power_text(snapshot_, client_settings());
    for (uint32_t i = 0; i < offers.size(); ++i) {
      bool denied = false;
      for (const auto job_class : connection.getDenied())
        denied = denied || same_class(job_class, offers[i].getJobClass());
      offer_cards_[i]->set_offer(offers[i], power);
      offer_cards_[i]->set_allowed(!denied);
    }
  }

  void set_consent(OfferCard* card, bool allowed) {
    card->begin_answer();
    link().call<&rpc::Agent::Client::setConsentRequest>(
        card,
        [&](auto params) {
          params.setUrl(cards_of_.toStdString());
          card->write_class(params.initJobClass());
          params.setAllowed(allowed);
        },
        [this, card](AnswerOf<&rpc::Agent::Client::setConsentRequest> answer) {
          card->end_answer(answer.ok() ? QString() : sentence(answer.error()));
          if (!answer.ok()) show_selected();  // As it still is.
        });
  }

  void clear_preview() {
    preview_->hide();
    preview_cards_.clear();
    qDeleteAll(preview_->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly));
  }

  void look() {
    const QString url = url_->text().trimmed();
    if (url.isEmpty() || !look_->isEnabled()) return;
    look_->setEnabled(false);
    look_->setText(tr("Asking…"));
    set_problem(*join_problem_, {});
    clear_preview();
    link().call<&rpc::Agent::Client::previewAttachRequest>(
        this, [&](auto params) { params.setUrl(url.toStdString()); },
        [this, url](AnswerOf<&rpc::Agent::Client::previewAttachRequest> answer) {
          look_->setEnabled(true);
          look_->setText(tr("See what it &asks"));
          if (url != url_->text().trimmed()) return;  // Another is wanted by now.
          if (!answer.ok()) return set_problem(*join_problem_, sentence(answer.error()));
          show_preview(answer.value()->reader().getCard());
        },
        kContactMax);
  }

  void show_preview(rpc::CoordinatorCard::Reader card) {
    auto* name = new QLabel(text_of(card.getName()), preview_);
    name->setTextFormat(Qt::PlainText);
    set_text_role(*name, TextRole::kTitle);
    preview_layout_->addWidget(name);
    const QString about = text_of(card.getOperator());
    if (!about.isEmpty()) {
      auto* text = make_text(preview_);
      text->setText(about);
      preview_layout_->addWidget(text);
    }
    auto* asks = make_text(preview_);
    asks->setText(card.getOffers().size() == 0
                      ? tr("It has no work now, and does not say what may come.")
                      : tr("This is the work that may come. Deny what you do not want; you can "
                           "change it at any time."));
    set_text_role(*asks, TextRole::kQuiet);
    preview_layout_->addWidget(asks);
    for (const auto offer : card.getOffers()) {
      auto* offer_card = new OfferCard(offer.getJobClass(), preview_);
      offer_card->set_offer(offer, power_text(snapshot_, client_settings()));
      preview_cards_.push_back(offer_card);
      preview_layout_->addWidget(offer_card);
    }
    auto* join = new QPushButton(tr("&Join"), preview_);
    join->setObjectName(QStringLiteral("join"));
    join->setDefault(true);
    auto* cancel = new QPushButton(tr("Not this one"), preview_);
    cancel->setAutoDefault(false);
    auto* row = new QHBoxLayout;
    auto* buttons = new QWidget(preview_);
    buttons->setLayout(row);
    row->setContentsMargins(0, 0, 0, 0);
    row->addStretch();
    row->addWidget(cancel);
    row->addWidget(join);
    preview_layout_->addWidget(buttons);
    preview_->show();
    join->setFocus();
    connect(cancel, &QPushButton::clicked, url_, &QLineEdit::clear);
    connect(join, &QPushButton::clicked, this, &CoordinatorsPage::join);
  }

  void join() {
    const QString url = url_->text().trimmed();
    auto* const button = preview_->findChild<QPushButton*>(QStringLiteral("join"));
    button->setEnabled(false);
    button->setText(tr("Joining…"));
    set_problem(*join_problem_, {});
    link().call<&rpc::Agent::Client::attachRequest>(
        this,
        [&](auto params) {
          params.setUrl(url.toStdString());
          write_denied(preview_cards_, params);
        },
        [this, url, held = QPointer(button)](AnswerOf<&rpc::Agent::Client::attachRequest> answer) {
          if (held != nullptr) {
            held->setEnabled(true);
            held->setText(tr("&Join"));
          }
          if (!answer.ok()) return set_problem(*join_problem_, sentence(answer.error()));
          if (url == url_->text().trimmed()) url_->clear();
          table_->select_identity(text_of(answer.value()->reader().getConnection().getUrl()));
        },
        kContactMax);
  }

  void ask_leave() {
    const ConnectionRow* const row = selected();
    if (row == nullptr) return;
    const QString url = text_of(row->connection.getUrl());
    const QString name = text_of(row->connection.getName());
    auto* box = new QMessageBox(
        QMessageBox::Question, tr("Leave"),
        tr("Leave %1? Its stages are given back, and nothing more comes from there. What you "
           "earned stays in its ledger, and the receipts stay here.")
            .arg(name.isEmpty() ? url : name),
        QMessageBox::NoButton, this);
    box->setTextFormat(Qt::PlainText);
    box->setAttribute(Qt::WA_DeleteOnClose);
    QPushButton* const leave = box->addButton(tr("&Leave"), QMessageBox::DestructiveRole);
    leave->setObjectName(QStringLiteral("leave_now"));
    box->setDefaultButton(box->addButton(QMessageBox::Cancel));
    connect(leave, &QPushButton::clicked, this, [this, url] {
      link().call<&rpc::Agent::Client::detachRequest>(
          this, [&](auto params) { params.setUrl(url.toStdString()); },
          [this](AnswerOf<&rpc::Agent::Client::detachRequest> answer) {
            set_problem(*leave_problem_, answer.ok() ? QString() : sentence(answer.error()));
          },
          kContactMax);
    });
    box->open();
  }

  SnapshotPtr snapshot_;
  QString shown_;     // The URL of the coordinator whose details are shown.
  QString cards_of_;  // The URL of the coordinator whose offers the cards are.
  std::vector<OfferCard*> offer_cards_, preview_cards_;
  Card *list_card_, *standing_card_, *consent_card_;
  TableModel<ConnectionRow>* model_;
  DataTable* table_;
  QLabel *about_, *state_, *join_about_, *leave_problem_, *join_problem_;
  TableModel<StandingRow>* standing_model_;
  DataTable* standing_table_;
  QPushButton *leave_, *look_;
  QVBoxLayout *consents_, *preview_layout_;
  QLineEdit* url_;
  QWidget* preview_;
};

}  // namespace

Page* make_coordinators_page(const PageContext& context, QWidget* parent) {
  return new CoordinatorsPage(context, parent);
}

}  // namespace shoal::ui

#include "coordinators_page.moc"
