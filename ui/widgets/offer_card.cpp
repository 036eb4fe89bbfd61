#include "ui/widgets/offer_card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QRadioButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "ui/client_settings.h"
#include "ui/format.h"
#include "ui/tables.h"
#include "ui/theme.h"
#include "ui/widgets/card.h"

namespace shoal::ui {
namespace {

void set_text(QLabel& label, const QString& text) {
  if (label.text() != text) label.setText(text);
}

}  // namespace

QString power_text(const SnapshotPtr& snapshot, const ClientSettings& settings) {
  double watts = 0;
  bool measured = true;
  if (snapshot == nullptr) return {};
  for (const auto device : snapshot->reader().getDevices()) {
    if (!device.getLent()) continue;
    // A figure of an idle device says nothing of one that works.
    const bool tells = device.getWattsMeasured() && device.getDuty() > 0.5F;
    measured = measured && tells;
    watts += tells                                        ? device.getWatts()
             : device.getResource() == rpc::Resource::CPU ? settings.cpu_watts()
                                                          : settings.gpu_watts();
  }
  return measured ? OfferCard::tr("%1 while it works").arg(format_watts(watts))
                  : OfferCard::tr("about %1 while it works").arg(format_watts(watts));
}

OfferCard::OfferCard(rpc::JobClass::Reader job_class, QWidget* parent)
    : QFrame(parent),
      kind_(job_class.getKind().cStr()),
      model_(job_class.getModel().cStr()),
      privacy_(job_class.getPrivacy()) {
  const QString model = text_of(job_class.getModel());
  setFrameShape(QFrame::StyledPanel);
  setAccessibleName(job_class_text(job_class));
  auto* name = new QLabel(model, this);
  name->setTextFormat(Qt::PlainText);
  set_text_role(*name, TextRole::kHeading);
  purpose_ = make_text(this);
  auto* data = make_text(this);
  data->setText(privacy_sentence(privacy_));
  cost_ = make_text(this);
  set_text_role(*cost_, TextRole::kQuiet);
  problem_ = make_problem(this);
  auto* words = new QVBoxLayout;
  words->setSpacing(kSpaceSmall);
  for (QLabel* label : {name, purpose_, data, cost_, problem_}) words->addWidget(label);
  allow_ = new QRadioButton(tr("Allow"), this);
  deny_ = new QRadioButton(tr("Deny"), this);
  allow_->setObjectName("allow_" + model);
  deny_->setObjectName("deny_" + model);
  allow_->setAccessibleName(tr("Allow %1").arg(job_class_text(job_class)));
  deny_->setAccessibleName(tr("Deny %1").arg(job_class_text(job_class)));
  allow_->setChecked(true);
  auto* answers = new QVBoxLayout;
  answers->addWidget(allow_);
  answers->addWidget(deny_);
  answers->addStretch();
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(kSpace + kSpaceSmall, kSpace, kSpace + kSpaceSmall, kSpace);
  layout->setSpacing(kSpaceLarge);
  layout->addLayout(words, 1);
  layout->addLayout(answers);
  // Toggled, not clicked: a screen reader toggles. One of the two always is on.
  connect(allow_, &QRadioButton::toggled, this, &OfferCard::decided);
}

bool OfferCard::is_of(rpc::JobClass::Reader job_class) const {
  return job_class.getKind() == kind_.c_str() && job_class.getModel() == model_.c_str() &&
         job_class.getPrivacy() == privacy_;
}

void OfferCard::write_class(rpc::JobClass::Builder to) const {
  to.setKind(kind_);
  to.setModel(model_);
  to.setPrivacy(privacy_);
}

void OfferCard::set_offer(rpc::CoordinatorCard::Offer::Reader offer, const QString& power) {
  const QString purpose = text_of(offer.getPurpose());
  set_text(*purpose_,
           purpose.isEmpty() ? tr("Its publisher does not say what it is for.") : purpose);
  set_text(*cost_, tr("Up to %1 to fetch · %2 credit for 1,000 tokens · %3")
                       .arg(format_bytes(static_cast<double>(offer.getSealedBytes())),
                            format_credit(offer.getCreditPerRow() * 1'000), power));
}

bool OfferCard::allowed() const { return allow_->isChecked(); }

void OfferCard::set_allowed(bool allowed) {
  if (answering_ || allowed == allow_->isChecked()) return;
  const QSignalBlocker quiet(allow_);
  (allowed ? allow_ : deny_)->setChecked(true);
}

void write_denied(const std::vector<OfferCard*>& cards, rpc::Agent::AttachParams::Builder to) {
  std::vector<const OfferCard*> unwanted;
  for (const OfferCard* card : cards) {
    if (!card->allowed()) unwanted.push_back(card);
  }
  auto denied = to.initDenied(static_cast<uint32_t>(unwanted.size()));
  for (uint32_t i = 0; i < denied.size(); ++i) unwanted[i]->write_class(denied[i]);
}

void OfferCard::end_answer(const QString& problem) {
  answering_ = false;
  set_problem(*problem_, problem);
}

}  // namespace shoal::ui
