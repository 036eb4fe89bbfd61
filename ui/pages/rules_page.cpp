// When this computer works, and within which limits: every setting of the client, what its rules
// made of the last week, and what others would have.

#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QStackedWidget>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "ui/agent_link.h"
#include "ui/client_settings.h"
#include "ui/messages.h"
#include "ui/pages/content_page.h"
#include "ui/pages/rules_parts.h"
#include "ui/theme.h"
#include "ui/widgets/setting_editor.h"
#include "ui/widgets/setting_looks.h"

namespace shoal::ui {
namespace {

constexpr int kRefreshMs = 10'000;

class RulesPage final : public ContentPage {
  Q_OBJECT

 public:
  RulesPage(const PageContext& context, QWidget* parent) : ContentPage(context, parent) {
    sections_ = new QListWidget(this);
    sections_->setObjectName(QStringLiteral("sections"));
    sections_->setAccessibleName(tr("Groups of rules"));
    sections_->setFrameShape(QFrame::NoFrame);
    sections_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    sections_->viewport()->setAutoFillBackground(false);
    stack_ = new QStackedWidget(this);
    auto* layout = new QHBoxLayout(content());
    layout->setContentsMargins(kSpaceLarge, kSpaceLarge, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(sections_);
    layout->addWidget(stack_, 1);

    QVBoxLayout* const now = add_section(tr("Now"));
    modes_ = new ModesCard(context, this);
    leave_by_ = new LeaveByCard(context, this);
    sensors_ = new SensorsCard(context, this);
    now->addWidget(modes_);
    now->addWidget(leave_by_);
    now->addWidget(sensors_);
    now->addStretch();

    QVBoxLayout* const week = add_section(tr("Last week"));
    trace_ = new TraceCard(context, this);
    what_if_ = new WhatIfCard(context, this);
    week->addWidget(trace_);
    week->addWidget(what_if_);
    week->addStretch();

    for (int i = 0; i <= static_cast<int>(SettingSection::kAdvanced); ++i) {
      const auto section = static_cast<SettingSection>(i);
      QVBoxLayout* const body = add_section(section_title(section));
      auto* card = new Card(this);
      card->set_title(section_title(section));
      section_cards_.push_back(card);
      section_places_.push_back(sections_->count() - 1);
      body->addWidget(card);
      if (section == SettingSection::kInUse) {
        yield_ = new YieldCard(this);
        idle_ = new IdleCard(context, this);
        body->addWidget(yield_);
        body->addWidget(idle_);
      }
      if (section == SettingSection::kAdvanced) {
        pairing_ = new PairingCard(context, this);
        body->addWidget(pairing_);
      }
      body->addStretch();
    }
    // As wide as its longest entry.
    sections_->setFixedWidth(sections_->sizeHintForColumn(0) + 2 * kSpaceLarge);
    problem_ = make_problem(this);
    section_cards_.back()->body()->addWidget(problem_);

    refresh_.setInterval(kRefreshMs);
    ClientSettings* const settings = &client_settings();
    connect(&refresh_, &QTimer::timeout, this, &RulesPage::refresh);
    connect(sections_, &QListWidget::currentRowChanged, this, [this](int row) {
      stack_->setCurrentIndex(row);
      show_section();
      refresh();
    });
    connect(what_if_, &WhatIfCard::applied, settings, &ClientSettings::refresh_after_change);
    connect(settings, &ClientSettings::changed, this, &RulesPage::show_settings);
    connect(settings, &ClientSettings::failed, this,
            [this](const Error& error) { set_problem(*problem_, sentence(error)); });
    sections_->setCurrentRow(0);
  }

  void show_snapshot(const SnapshotPtr& snapshot) override {
    snapshot_ = snapshot;
    show_content();
    show_section();
    if (refresh_.isActive()) return;
    refresh_.start();
    show_settings();  // As they were told to another page.
    refresh();
  }

  void show_disconnected() override {
    snapshot_ = nullptr;
    refresh_.stop();
    ContentPage::show_disconnected();
  }

  // A setting's key.
  void show_detail(const QString& key) override {
    wanted_ = key;
    show_wanted();
  }

 protected:
  void hideEvent(QHideEvent* event) override {
    refresh_.stop();
    ContentPage::hideEvent(event);
  }

 private:
  QVBoxLayout* add_section(const QString& title) {
    sections_->addItem(title);
    sections_->item(sections_->count() - 1)
        ->setSizeHint({fontMetrics().horizontalAdvance(title) + kSpaceLarge,
                       fontMetrics().height() + 2 * kSpace});
    auto* scroller = new Scroller(stack_);
    scroller->body()->setContentsMargins(kSpaceLarge, 0, kSpaceLarge, kSpaceLarge);
    stack_->addWidget(scroller);
    return scroller->body();
  }

  // Only what is on screen works: the cards of the other sections get their news when they come.
  void show_section() {
    if (snapshot_ == nullptr) return;
    const auto shown = [this](const QWidget* card) {
      return stack_->currentWidget()->isAncestorOf(card);
    };
    const auto now = snapshot_->reader();
    if (shown(modes_)) {
      modes_->show_snapshot(now);
      leave_by_->show_snapshot(now);
      sensors_->show_snapshot(snapshot_);
    }
    if (shown(trace_)) {
      trace_->fetch();
      what_if_->show_settings(client_settings().all());
    }
    if (shown(idle_)) {
      idle_->show_snapshot(snapshot_);
      yield_->show_snapshot(now);
    }
    if (shown(pairing_)) pairing_->show_snapshot(now);
  }

  // What a snapshot does not tell.
  void refresh() {
    if (snapshot_ == nullptr) return;
    client_settings().refresh();
    if (stack_->currentWidget()->isAncestorOf(pairing_)) pairing_->fetch();
  }

  void show_settings() {
    const SettingsPtr& settings = client_settings().all();
    if (settings == nullptr || snapshot_ == nullptr || !isVisible()) return;
    set_problem(*problem_, {});
    for (const auto setting : settings->reader().getSettings()) {
      const QString key = text_of(setting.getKey());
      const auto found = editors_.find(key);
      if (found != editors_.end()) {
        found->second.editor->set_setting(setting);
        continue;
      }
      const SettingLook* const look = find_setting_look(key);
      const auto section =
          static_cast<size_t>(look == nullptr ? SettingSection::kAdvanced : look->section);
      auto* editor = new SettingEditor(setting, section_cards_[section]);
      section_cards_[section]->body()->addWidget(editor);
      editors_[key] = {editor, section_places_[section]};
      connect(editor, &SettingEditor::changed, this, &RulesPage::change);
    }
    show_section();
    show_wanted();
  }

  void change(const QString& key, const SettingValue& value) {
    link().call<&rpc::Agent::Client::changeSettingsRequest>(
        this,
        [&](auto params) {
          auto change = params.initChanges(1)[0];
          change.setKey(key.toStdString());
          write_setting_value(value, change.initValue());
        },
        [this, key](AnswerOf<&rpc::Agent::Client::changeSettingsRequest> answer) {
          editors_.at(key).editor->set_answer(answer.ok() ? QString() : sentence(answer.error()));
          if (answer.ok()) client_settings().refresh_after_change();
        });
  }

  void show_wanted() {
    const auto found = editors_.find(wanted_);
    if (found == editors_.end()) return;  // It is shown once the settings are here.
    const auto [editor, section] = found->second;
    wanted_.clear();
    sections_->setCurrentRow(section);
    editor->control()->focus_widget()->setFocus();
    if (auto* scroller = qobject_cast<Scroller*>(stack_->currentWidget()))
      scroller->ensureWidgetVisible(editor);
  }

  SnapshotPtr snapshot_;
  QListWidget* sections_;
  QStackedWidget* stack_;
  std::vector<Card*> section_cards_;  // By SettingSection.
  std::vector<int> section_places_;   // Their places in the list.
  struct Edited {
    SettingEditor* editor;
    int section;  // Its place in the list.
  };
  std::map<QString, Edited> editors_;  // By the settings' keys.
  QString wanted_;
  QTimer refresh_;
  QLabel* problem_;
  ModesCard* modes_;
  LeaveByCard* leave_by_;
  SensorsCard* sensors_;
  TraceCard* trace_;
  WhatIfCard* what_if_;
  YieldCard* yield_;
  IdleCard* idle_;
  PairingCard* pairing_;
};

}  // namespace

Page* make_rules_page(const PageContext& context, QWidget* parent) {
  return new RulesPage(context, parent);
}

}  // namespace shoal::ui

#include "rules_page.moc"
