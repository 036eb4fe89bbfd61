// What this computer works on now, what it fetches, and what it has done.

#include <QLabel>
#include <QVBoxLayout>

#include "ui/agent_link.h"
#include "ui/messages.h"
#include "ui/pages/content_page.h"
#include "ui/tables.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/data_table.h"

namespace shoal::ui {
namespace {

constexpr uint32_t kHistoryMax = 1'000;
constexpr Millis kHistoryAge{30'000};

class WorkPage final : public ContentPage {
  Q_OBJECT

 public:
  WorkPage(const PageContext& context, QWidget* parent) : ContentPage(context, parent) {
    work_model_ = new TableModel<WorkRow>(
        work_columns(), [](const WorkRow& row) { return QString::number(row.work.getLeaseId()); },
        this);
    work_table_ = new DataTable(work_model_, QStringLiteral("work"), tr("Work now"), this);
    work_table_->set_rows_shown(4);
    transfer_model_ = new TableModel<TransferRow>(
        transfer_columns(), [](const TransferRow& row) { return text_of(row.getDigest()); }, this);
    transfer_table_ =
        new DataTable(transfer_model_, QStringLiteral("transfers"), tr("Transfers"), this);
    transfer_table_->set_empty_text(
        tr("Nothing is fetched now. Parts of models are fetched when work needs them, and kept."));
    transfer_table_->set_rows_shown(3);
    past_model_ = new TableModel<PastWorkRow>(
        past_work_columns(),
        [](const PastWorkRow& row) {
          return QStringLiteral("%1 %2").arg(row.work.getLeaseId()).arg(row.work.getEndedMs());
        },
        this);
    past_table_ = new DataTable(past_model_, QStringLiteral("history"), tr("History"), this);
    past_table_->set_empty_text(tr("No work has ended yet."));
    past_table_->sort_by(0, Qt::DescendingOrder);
    past_table_->setMinimumHeight(220);
    problem_ = make_problem(this);

    Scroller* const scroller = make_scroller();
    const std::pair<DataTable*, QString> kTables[] = {
        {work_table_, tr("Work now")},
        {transfer_table_, tr("Transfers")},
        {past_table_, tr("History")},
    };
    for (const auto& [table, title] : kTables) {
      auto* card = new Card(this);
      card->set_title(title);
      if (table == past_table_) card->body()->addWidget(problem_);
      card->body()->addWidget(table, 1);
      scroller->body()->addWidget(card, table == past_table_ ? 1 : 0);
    }
  }

  void show_snapshot(const SnapshotPtr& snapshot) override {
    show_content();
    const Millis now = clock().now_wall();
    names_ = DeviceNames(snapshot->reader());
    // Why there is no work is the first thing that somebody wants to know here.
    const auto overall = snapshot->reader().getOverall();
    // Between two pieces of work nothing stands in the way.
    QString why = overall.getActivity() == rpc::Activity::WORKING
                      ? tr("Nothing is worked on at this moment. More may come at any time.")
                      : tr("Nothing is worked on now. %1").arg(sentence(overall.getWhy()));
    const QString remedy = sentence(overall.getRemedy());
    if (!remedy.isEmpty()) why += ' ' + remedy;
    work_table_->set_empty_text(why);

    std::vector<WorkRow> work;
    for (const auto row : snapshot->reader().getWork())
      work.push_back({row, names_.name(row.getDeviceId()), now});
    const size_t before = work_model_->rows().size();
    work_model_->set_rows(snapshot, work);
    std::vector<TransferRow> transfers;
    for (const auto row : snapshot->reader().getTransfers()) transfers.push_back(row);
    transfer_model_->set_rows(snapshot, std::move(transfers));
    // What ended is in the history; it is asked for again when something may have.
    if (work.size() != before || now - fetched_at_ > kHistoryAge) fetch_history();
  }

  void show_disconnected() override {
    fetched_at_ = Millis{0};
    ContentPage::show_disconnected();
  }

 private:
  void fetch_history() {
    fetched_at_ = clock().now_wall();
    link().call<&rpc::Agent::Client::historyRequest>(
        this, [](auto params) { params.setCountMax(kHistoryMax); },
        [this](AnswerOf<&rpc::Agent::Client::historyRequest> answer) {
          set_problem(*problem_, answer.ok() ? QString() : sentence(answer.error()));
          if (!answer.ok()) return;
          std::vector<PastWorkRow> rows;
          const Millis now = clock().now_wall();
          for (const auto row : answer.value()->reader().getWork())
            rows.push_back({row, names_.name(row.getDeviceId()), now});
          past_model_->set_rows(answer.value(), std::move(rows));
        });
  }

  DeviceNames names_;
  Millis fetched_at_{0};
  TableModel<WorkRow>* work_model_;
  TableModel<TransferRow>* transfer_model_;
  TableModel<PastWorkRow>* past_model_;
  DataTable *work_table_, *transfer_table_, *past_table_;
  QLabel* problem_;
};

}  // namespace

Page* make_work_page(const PageContext& context, QWidget* parent) {
  return new WorkPage(context, parent);
}

}  // namespace shoal::ui

#include "work_page.moc"
