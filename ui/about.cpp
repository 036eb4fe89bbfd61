#include "ui/about.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QSettings>
#include <QVBoxLayout>

#include "ui/icons.h"

namespace shoal::ui {

About::About(AgentLink& link, WindowParts parts, QSettings& settings, QWidget* parent)
    : QWidget(parent), link_(link), parts_(parts), settings_(settings) {
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* page = new Scroller(this);
  outer->addWidget(page);
  page->body()->addWidget(&problem_);

  auto* head = new Card(this);
  auto* row = new QHBoxLayout;
  row->setSpacing(kSpaceLarge);
  auto* icon = new QLabel(head);
  icon->setPixmap(colored_icon("shoal").pixmap(QSize(64, 64), devicePixelRatioF()));
  icon->setAccessibleName(tr("Shoal"));
  auto* names = new QVBoxLayout;
  auto* name = new QLabel(tr("Shoal"), head);
  set_text_role(*name, TextRole::kTitle);
  auto* what = make_text(head);
  what->setText(tr("Lends this computer to large language models, when you do not need it."));
  names->addWidget(name);
  names->addWidget(what);
  names->setSpacing(kSpaceSmall);
  row->addWidget(icon, 0, Qt::AlignTop);
  row->addLayout(names, 1);
  row->setAlignment(names, Qt::AlignTop);
  head->body()->addLayout(row);
  facts_ = make_text(head);
  set_text_role(*facts_, TextRole::kQuiet);
  head->body()->addWidget(facts_);
  page->body()->addWidget(head);

  auto* own = new Card(this);
  own->set_title(tr("This window"));
  look_.addItem(tr("As the desktop"), int(Theme::Choice::kDesktop));
  look_.addItem(tr("Light"), int(Theme::Choice::kLight));
  look_.addItem(tr("Dark"), int(Theme::Choice::kDark));
  look_.setAccessibleName(tr("Colours"));
  look_.setCurrentIndex(look_.findData(int(parts_.theme.choice())));
  look_.setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
  autostart_.setText(tr("Start Shoal when I log in"));
  notices_.setText(tr("Tell me by notifications when I am needed"));
  auto* form = new QHBoxLayout;
  auto* label = new QLabel(tr("&Colours"), own);
  label->setBuddy(&look_);
  form->addWidget(label);
  form->addWidget(&look_);
  form->addStretch();
  own->body()->addLayout(form);
  own->body()->addWidget(&autostart_);
  own->body()->addWidget(&notices_);
  auto* buttons = new QHBoxLayout;
  auto* guide = new QPushButton(tr("Show the first steps again"), own);
  auto* quit = new QPushButton(tr("Quit Shoal"), own);
  buttons->addWidget(guide);
  buttons->addWidget(quit);
  buttons->addStretch();
  own->body()->addLayout(buttons);
  page->body()->addWidget(own);

  auto* rights = new Card(this);
  rights->set_title(tr("Licence"));
  auto* licence = make_text(rights);
  licence->setText(
      tr("This program uses Qt Charts and is free software under the GNU General Public License, "
         "version 3. It comes without any warranty. The background program and all others of Shoal "
         "have a licence of their own, in the file LICENSE."));
  rights->body()->addWidget(licence);
  page->body()->addWidget(rights);
  page->body()->addStretch();

  connect(&look_, &QComboBox::currentIndexChanged, this, [this] {
    const auto choice = static_cast<Theme::Choice>(look_.currentData().toInt());
    settings_.setValue("look", int(choice));
    parts_.theme.set_choice(choice);
  });
  connect(&autostart_, &QCheckBox::toggled, this, [this](bool on) {
    const Result<void> kept = parts_.autostart.set_enabled(on);
    if (!kept.ok()) problem_.show_error(kept.error());
    refresh();
  });
  connect(&notices_, &QCheckBox::toggled, this,
          [this](bool on) { parts_.notices.set_enabled(on); });
  connect(guide, &QPushButton::clicked, this, &About::guide_wanted);
  connect(quit, &QPushButton::clicked, this, &About::quit_wanted);
  refresh();
}

void About::refresh() {
  const QSignalBlocker quiet_start(autostart_), quiet_notices(notices_);
  autostart_.setChecked(parts_.autostart.enabled());
  notices_.setChecked(parts_.notices.enabled());
  QStringList lines{tr("Version %1 of this window").arg(SHOAL_VERSION)};
  if (link_.snapshot() != nullptr) {
    const auto now = link_.snapshot()->reader();
    lines += tr("Version %1 of the background program, process %2")
                 .arg(QString::fromUtf8(now.getVersion().cStr()))
                 .arg(now.getPid());
    lines += tr("Its records are in %1").arg(QString::fromUtf8(now.getStateFolder().cStr()));
  } else {
    lines += tr("The background program does not run.");
  }
  facts_->setText(lines.join('\n'));
}

}  // namespace shoal::ui
