// What happened, line by line: filtered, searched, followed, copied; and a bundle for bug reports.

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSaveFile>
#include <QScrollBar>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <set>

#include "base/text.h"
#include "ui/agent_link.h"
#include "ui/messages.h"
#include "ui/pages/content_page.h"
#include "ui/tables.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/data_table.h"

namespace shoal::ui {
namespace {

constexpr int kAskMs = 1'000;
constexpr uint32_t kLinesPerCall = 2'000;
constexpr size_t kLinesMax = 20'000;  // Older ones are let go.

using LogAnswer = AnswerOf<&rpc::Agent::Client::logRequest>;

// 0 is the worst.
int level_rank(const QString& level) {
  if (level == QLatin1String("error")) return 0;
  return level == QLatin1String("warning") ? 1 : 2;
}

// Shows what a bundle holds before it is saved: nothing leaves unseen.
class BundleDialog final : public QDialog {
  Q_OBJECT

 public:
  explicit BundleDialog(const QString& text, QWidget* parent) : QDialog(parent) {
    setWindowTitle(tr("Bundle for a bug report"));
    setAttribute(Qt::WA_DeleteOnClose);
    auto* about = make_text(this);
    about->setText(
        tr("This is all that the file will hold. Keys, invites, addresses, and names of people and "
           "machines are taken out; look for yourself before you give it to anybody."));
    text_ = new QPlainTextEdit(this);
    text_->setObjectName(QStringLiteral("bundle_text"));
    text_->setReadOnly(true);
    text_->setPlainText(text);
    text_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    text_->setLineWrapMode(QPlainTextEdit::NoWrap);
    text_->setTabChangesFocus(true);
    text_->setAccessibleName(tr("Contents of the bundle"));
    problem_ = make_problem(this);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Close, this);
    auto* layout = new QVBoxLayout(this);
    layout->addWidget(about);
    layout->addWidget(text_, 1);
    layout->addWidget(problem_);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons->button(QDialogButtonBox::Save), &QPushButton::clicked, this,
            &BundleDialog::ask_and_save);
    resize(720, 520);
  }

 private:
  void ask_and_save() {
    auto* dialog = new QFileDialog(this, tr("Save the bundle"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(QStringLiteral("txt"));
    dialog->selectFile(QStringLiteral("shoal-bundle.txt"));
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
      QSaveFile file(path);
      if (file.open(QIODevice::WriteOnly)) {
        file.write(text_->toPlainText().toUtf8());
        if (file.commit()) return accept();
      }
      set_problem(*problem_, tr("%1 cannot be written: %2").arg(path, file.errorString()));
    });
    dialog->open();
  }

  QPlainTextEdit* text_;
  QLabel* problem_;
};

class LogPage final : public ContentPage {
  Q_OBJECT

 public:
  LogPage(const PageContext& context, QWidget* parent) : ContentPage(context, parent) {
    model_ = new TableModel<LogRow>(
        log_columns(), [](const LogRow& line) { return QString::number(line.getId()); }, this);
    table_ = new DataTable(model_, QStringLiteral("log"), tr("Log"), this);
    table_->set_empty_text(tr("Nothing has been logged yet."));
    levels_ = new QComboBox(this);
    levels_->setObjectName(QStringLiteral("level"));
    levels_->setAccessibleName(tr("Least level"));
    levels_->addItem(tr("Everything"), 2);
    levels_->addItem(tr("Warnings and errors"), 1);
    levels_->addItem(tr("Errors"), 0);
    modules_ = new QComboBox(this);
    modules_->setObjectName(QStringLiteral("module"));
    modules_->setAccessibleName(tr("Module"));
    modules_->addItem(tr("All modules"), QString());
    modules_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    follow_ = new QCheckBox(tr("&Follow"), this);
    follow_->setObjectName(QStringLiteral("follow"));
    follow_->setChecked(true);
    follow_->setToolTip(tr("Stay at the newest line"));
    bundle_ = new QPushButton(tr("&Bundle for a bug report…"), this);
    bundle_->setObjectName(QStringLiteral("bundle"));
    bundle_->setAutoDefault(false);
    problem_ = make_problem(this);
    table_->add_control(levels_);
    table_->add_control(modules_);
    table_->add_control(follow_);
    table_->filter_edit()->setPlaceholderText(tr("Search"));

    auto* foot = new QHBoxLayout;
    count_ = new QLabel(this);
    set_text_role(*count_, TextRole::kSmall);
    foot->addWidget(count_, 1);
    foot->addWidget(bundle_);
    auto* card = new Card(this);
    card->body()->setContentsMargins(kSpaceLarge, kSpaceLarge, kSpaceLarge, kSpaceLarge);
    card->body()->addWidget(problem_);
    card->body()->addWidget(table_, 1);
    card->body()->addLayout(foot);
    auto* layout = new QVBoxLayout(content());
    layout->setContentsMargins(kSpaceLarge, kSpaceLarge, kSpaceLarge, kSpaceLarge);
    layout->addWidget(card);

    table_->set_row_filter([this](int row) { return accepts(model_->rows()[size_t(row)]); });
    ask_.setInterval(kAskMs);
    connect(&ask_, &QTimer::timeout, this, &LogPage::fetch);
    connect(levels_, &QComboBox::currentIndexChanged, this, &LogPage::filter_changed);
    connect(modules_, &QComboBox::currentIndexChanged, this, &LogPage::filter_changed);
    connect(table_->filter_edit(), &QLineEdit::textChanged, this, &LogPage::show_count);
    connect(follow_, &QCheckBox::toggled, this, &LogPage::follow);
    connect(bundle_, &QPushButton::clicked, this, &LogPage::ask_bundle);
    // Whoever scrolls up wants to read; at the end it follows again.
    connect(table_->view()->verticalScrollBar(), &QScrollBar::actionTriggered, this, [this] {
      const QScrollBar* const bar = table_->view()->verticalScrollBar();
      follow_->setChecked(bar->sliderPosition() >= bar->maximum());
    });
  }

  void show_snapshot(const SnapshotPtr& snapshot) override {
    show_content();
    // A new process counts its lines from the start.
    if (snapshot->reader().getPid() != pid_) {
      pid_ = snapshot->reader().getPid();
      model_->set_rows(nullptr, {});
      newest_ = 0;
    }
    if (ask_.isActive()) return;
    ask_.start();
    fetch();
  }

  void show_disconnected() override {
    ask_.stop();
    ContentPage::show_disconnected();
  }

 protected:
  void hideEvent(QHideEvent* event) override {
    ask_.stop();
    ContentPage::hideEvent(event);
  }

 private:
  void fetch() {
    if (fetching_) return;
    fetching_ = true;
    link().call<&rpc::Agent::Client::logRequest>(
        this,
        [this](auto params) {
          params.setAfterId(newest_);
          params.setCountMax(kLinesPerCall);
        },
        [this](LogAnswer answer) {
          fetching_ = false;
          set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
          if (!answer.ok()) return;
          std::vector<LogRow> lines;
          for (const auto line : answer.value()->reader().getLines()) lines.push_back(line);
          if (lines.empty()) return;
          // An answer to a question of before a restart.
          if (lines.front().getId() <= newest_) return;
          newest_ = lines.back().getId();
          for (const LogRow& line : lines) add_module(text_of(line.getModule()));
          model_->append_rows(answer.value(), std::move(lines), kLinesMax);
          show_count();
          if (follow_->isChecked()) follow(true);
        });
  }

  void add_module(const QString& module) {
    if (module.isEmpty() || modules_->findData(module) >= 0) return;
    int at = 1;  // In the order of the alphabet, below "all".
    while (at < modules_->count() && modules_->itemText(at) < module) ++at;
    modules_->insertItem(at, module, module);
  }

  bool accepts(const LogRow& line) const {
    if (level_rank(text_of(line.getLevel())) > levels_->currentData().toInt()) return false;
    const QString module = modules_->currentData().toString();
    return module.isEmpty() || module == text_of(line.getModule());
  }

  void filter_changed() {
    table_->refilter();
    show_count();
    if (follow_->isChecked()) follow(true);
  }

  void show_count() {
    count_->setText(tr("%1 of %n line(s)", nullptr, static_cast<int>(model_->rows().size()))
                        .arg(table_->rows_visible()));
  }

  void follow(bool on) {
    if (on) table_->view()->scrollToBottom();
  }

  void ask_bundle() {
    bundle_->setEnabled(false);
    link().call<&rpc::Agent::Client::bundleRequest>(
        this, [](auto) {},
        [this](AnswerOf<&rpc::Agent::Client::bundleRequest> answer) {
          bundle_->setEnabled(true);
          set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
          if (!answer.ok()) return;
          const auto text = answer.value()->reader().getText();
          const std::string shown =
              printable(std::string_view(text.cStr(), text.size()), /*keep_lines=*/true);
          auto* dialog = new BundleDialog(QString::fromStdString(shown), this);
          dialog->open();
        },
        Millis{60'000});
  }

  uint64_t newest_ = 0;
  uint32_t pid_ = 0;
  bool fetching_ = false;
  QTimer ask_;
  TableModel<LogRow>* model_;
  DataTable* table_;
  QComboBox *levels_, *modules_;
  QCheckBox* follow_;
  QPushButton* bundle_;
  QLabel *problem_, *count_;
};

}  // namespace

Page* make_log_page(const PageContext& context, QWidget* parent) {
  return new LogPage(context, parent);
}

}  // namespace shoal::ui

#include "log_page.moc"
