<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>Contribute</name>
    <message>
        <source>15 minutes</source>
        <translation>15 Minuten</translation>
    </message>
    <message>
        <source>1 hour</source>
        <translation>1 Stunde</translation>
    </message>
    <message>
        <source>4 hours</source>
        <translation>4 Stunden</translation>
    </message>
    <message>
        <source>Until tomorrow %1</source>
        <translation>Bis morgen %1</translation>
    </message>
    <message>
        <source>Until I resume</source>
        <translation>Bis ich fortsetze</translation>
    </message>
    <message>
        <source>Working</source>
        <translation>Arbeitet</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>Wartet</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Angehalten</translation>
    </message>
    <message>
        <source>Needs attention</source>
        <translation>Braucht Sie</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Nicht verbunden</translation>
    </message>
    <message>
        <source>Graphics cards</source>
        <translation>Grafikkarten</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>Prozessor</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
</context>
<context>
    <name>Format</name>
    <message>
        <source>%1 s</source>
        <translation>%1 s</translation>
    </message>
    <message>
        <source>%1 min</source>
        <translation>%1 min</translation>
    </message>
    <message>
        <source>%1 h</source>
        <translation>%1 h</translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation>%1 h %2 min</translation>
    </message>
    <message numerus="yes">
        <source>%n day(s)</source>
        <translation>
            <numerusform>%n Tag</numerusform>
            <numerusform>%n Tage</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 %2 h</source>
        <translation>%1 %2 h</translation>
    </message>
    <message>
        <source>%1/s</source>
        <comment>a rate</comment>
        <translation>%1/s</translation>
    </message>
    <message>
        <source>%1 billion</source>
        <translation>%1 Mrd.</translation>
    </message>
    <message>
        <source>%1 million</source>
        <translation>%1 Mio.</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>d MMM yyyy</source>
        <translation>d. MMM yyyy</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <comment>date, time</comment>
        <translation>%1 %2</translation>
    </message>
    <message>
        <source>tomorrow %1</source>
        <translation>morgen %1</translation>
    </message>
    <message>
        <source>yesterday %1</source>
        <translation>gestern %1</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <comment>weekday, time</comment>
        <translation>%1 %2</translation>
    </message>
    <message>
        <source>d MMM</source>
        <translation>d. MMM</translation>
    </message>
    <message>
        <source>just now</source>
        <translation>gerade eben</translation>
    </message>
    <message>
        <source>%1 ago</source>
        <translation>vor %1</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 ms</translation>
    </message>
</context>
<context>
    <name>messages</name>
    <message>
        <source>Ready. Other computers do all that is left of the jobs.</source>
        <translation>Bereit. Andere Computer erledigen alles, was von den Aufträgen übrig ist.</translation>
    </message>
    <message>
        <source>This coordinator&apos;s administrator lets this computer do nothing.</source>
        <translation>Wer diesen Koordinator verwaltet, lässt diesen Computer nichts tun.</translation>
    </message>
    <message>
        <source>You allow none of the jobs that there are.</source>
        <translation>Sie erlauben keinen der Aufträge, die es gibt.</translation>
    </message>
    <message>
        <source>It has as much work ahead as it should have.</source>
        <translation>Es hat so viel Arbeit vor sich, wie es haben soll.</translation>
    </message>
    <message>
        <source>Another computer&apos;s result was there first. This one is paid if it agrees.</source>
        <translation>Das Ergebnis eines anderen Computers war zuerst da. Dieses wird vergütet, wenn es übereinstimmt.</translation>
    </message>
    <message>
        <source>The result is not what was asked for: {0}.</source>
        <translation>Das Ergebnis ist nicht das, wonach gefragt war: {0}.</translation>
    </message>
    <message>
        <source>Ready. There is no job to work on now.</source>
        <translation>Bereit. Gerade gibt es keinen Auftrag, an dem zu arbeiten wäre.</translation>
    </message>
    <message>
        <source>Its results are not the same bits as those of other devices, which jobs need.</source>
        <translation>Seine Ergebnisse sind nicht dieselben Bits wie die anderer Geräte, was Aufträge brauchen.</translation>
    </message>
    <message>
        <source>The result is not needed any more.</source>
        <translation>Das Ergebnis wird nicht mehr gebraucht.</translation>
    </message>
    <message>
        <source>A result of this computer was wrong. It gets no more jobs before {0}.</source>
        <translation>Ein Ergebnis dieses Computers war falsch. Bis {0} bekommt er keine Aufträge mehr.</translation>
    </message>
    <message>
        <source>No model that the jobs need fits into this device whole.</source>
        <translation>Kein Modell, das die Aufträge brauchen, passt ganz in dieses Gerät.</translation>
    </message>
    <message>
        <source>All that is left takes longer than you leave it this device.</source>
        <translation>Alles, was übrig ist, dauert länger, als Sie dieses Gerät überlassen.</translation>
    </message>
    <message>
        <source>The jobs that there are run only on computers that the coordinator&apos;s administrator trusts.</source>
        <translation>Die Aufträge, die es gibt, laufen nur auf Computern, denen der Verwalter des Koordinators vertraut.</translation>
    </message>
    <message>
        <source>This device is not ready for jobs.</source>
        <translation>Dieses Gerät ist nicht bereit für Aufträge.</translation>
    </message>
    <message>
        <source>The job ended before anybody could check this result.</source>
        <translation>Der Auftrag endete, bevor jemand dieses Ergebnis prüfen konnte.</translation>
    </message>
    <message>
        <source>Other computers got another result than this one.</source>
        <translation>Andere Computer kamen zu einem anderen Ergebnis als dieser.</translation>
    </message>
    <message>
        <source>{0} does not work: {1}</source>
        <translation>{0} funktioniert nicht: {1}</translation>
    </message>
    <message>
        <source>{0} computes other results than it should: it gets no work.</source>
        <translation>{0} errechnet andere Ergebnisse, als es sollte: es bekommt keine Arbeit.</translation>
    </message>
    <message>
        <source>The disk has no room for Shoal&apos;s records: {0}</source>
        <translation>Auf der Platte ist kein Platz für die Aufzeichnungen von Shoal: {0}</translation>
    </message>
    <message>
        <source>No device is switched on for lending.</source>
        <translation>Kein Gerät ist zum Verleihen eingeschaltet.</translation>
    </message>
    <message>
        <source>Switch a device on under Devices.</source>
        <translation>Schalten Sie unter Geräte eines ein.</translation>
    </message>
    <message>
        <source>{0} refuses this computer: {1}</source>
        <translation>{0} weist diesen Rechner ab: {1}</translation>
    </message>
    <message>
        <source>Looking for the devices of this computer.</source>
        <translation>Die Geräte dieses Rechners werden gesucht.</translation>
    </message>
    <message>
        <source>{0} is not there now.</source>
        <translation>{0} ist zurzeit nicht da.</translation>
    </message>
    <message>
        <source>Shoal takes it again by itself as soon as its driver shows it.</source>
        <translation>Shoal nimmt es von selbst wieder, sobald sein Treiber es zeigt.</translation>
    </message>
    <message>
        <source>This device is not lent.</source>
        <translation>Dieses Gerät wird nicht verliehen.</translation>
    </message>
    <message>
        <source>Switch it on under Devices.</source>
        <translation>Schalten Sie es unter Geräte ein.</translation>
    </message>
    <message>
        <source>The devices of this computer cannot be listed: {0}</source>
        <translation>Die Geräte dieses Rechners lassen sich nicht auflisten: {0}</translation>
    </message>
    <message>
        <source>{0} is getting ready.</source>
        <translation>{0} macht sich bereit.</translation>
    </message>
    <message>
        <source>The list of devices to lend names &apos;{0}&apos;, which is not here. There are: {1}</source>
        <translation>Die Liste der zu verleihenden Geräte nennt „{0}“, das es hier nicht gibt. Vorhanden sind: {1}</translation>
    </message>
    <message>
        <source>You chose to work always.</source>
        <translation>Sie haben gewählt, immer zu arbeiten.</translation>
    </message>
    <message>
        <source>You paused this until you resume it.</source>
        <translation>Sie haben dies angehalten, bis Sie es fortsetzen.</translation>
    </message>
    <message>
        <source>Choose Resume.</source>
        <translation>Wählen Sie Fortsetzen.</translation>
    </message>
    <message>
        <source>You paused this until {0}.</source>
        <translation>Sie haben dies bis {0} angehalten.</translation>
    </message>
    <message>
        <source>Connecting to {0}.</source>
        <translation>{0} wird verbunden.</translation>
    </message>
    <message>
        <source>This computer has not joined a coordinator yet.</source>
        <translation>Dieser Rechner ist noch keinem Koordinator beigetreten.</translation>
    </message>
    <message>
        <source>Join one under Coordinators with the URL that you were given.</source>
        <translation>Treten Sie unter Koordinatoren mit der URL bei, die Sie bekommen haben.</translation>
    </message>
    <message>
        <source>{0} cannot be reached: {1}</source>
        <translation>{0} ist nicht erreichbar: {1}</translation>
    </message>
    <message>
        <source>Shoal tries again by itself, next in {0}.</source>
        <translation>Shoal versucht es von selbst wieder, das nächste Mal in {0}.</translation>
    </message>
    <message>
        <source>Computing {0} of the time at most, as you chose.</source>
        <translation>Höchstens {0} der Zeit wird gerechnet, wie Sie gewählt haben.</translation>
    </message>
    <message>
        <source>Nothing tells this device&apos;s temperature, so it cannot be held. Computing {0} of the time at most.</source>
        <translation>Nichts verrät die Temperatur dieses Geräts, darum lässt sie sich nicht halten. Höchstens {0} der Zeit wird gerechnet.</translation>
    </message>
    <message>
        <source>Nothing tells this device&apos;s power, so it cannot be held. Computing {0} of the time at most.</source>
        <translation>Nichts verrät die Leistung dieses Geräts, darum lässt sie sich nicht halten. Höchstens {0} der Zeit wird gerechnet.</translation>
    </message>
    <message>
        <source>Slowed to {0} of the time to stay at {1}.</source>
        <translation>Auf {0} der Zeit gebremst, um bei {1} zu bleiben.</translation>
    </message>
    <message>
        <source>Every receipt of {0} is genuine, and together they are the credit that it states.</source>
        <translation>Jede Quittung von {0} ist echt, und zusammen ergeben sie das Guthaben, das dort steht.</translation>
    </message>
    <message>
        <source>Every receipt of {0} is genuine, and together they are the credit that it states. Those up to {1} are in its signed lists of the days; others were told the same if their newest root is {2} too.</source>
        <translation>Jede Quittung von {0} ist echt, und zusammen ergeben sie das Guthaben, das dort steht. Die bis {1} stehen in den unterschriebenen Listen der Tage; anderen wurde dasselbe gesagt, wenn ihre neueste Wurzel ebenfalls {2} ist.</translation>
    </message>
    <message>
        <source>What this computer keeps of old receipts of {0} was changed by somebody.</source>
        <translation>Was dieser Rechner von alten Quittungen von {0} aufhebt, wurde von jemandem verändert.</translation>
    </message>
    <message>
        <source>The receipts of {0} are worth {1} credits together, but it states {2}.</source>
        <translation>Die Quittungen von {0} sind zusammen {1} Guthaben wert, dort stehen aber {2}.</translation>
    </message>
    <message>
        <source>The signature of {1} receipts of {0} is false.</source>
        <translation>Die Unterschrift von {1} Quittungen von {0} ist falsch.</translation>
    </message>
    <message>
        <source>Ask whoever runs the coordinator, unless this computer&apos;s records were changed.</source>
        <translation>Fragen Sie, wer den Koordinator betreibt, falls nicht die Aufzeichnungen dieses Rechners verändert wurden.</translation>
    </message>
    <message>
        <source>{0} owes you {1} receipts.</source>
        <translation>{0} schuldet Ihnen {1} Quittungen.</translation>
    </message>
    <message>
        <source>Shoal asks for them by itself whenever it is connected.</source>
        <translation>Shoal fragt von selbst danach, wann immer es verbunden ist.</translation>
    </message>
    <message>
        <source>{0} has judged the same work more than once, {1} times.</source>
        <translation>{0} hat dieselbe Arbeit mehr als einmal beurteilt, {1} Mal.</translation>
    </message>
    <message>
        <source>Every receipt of {0} is genuine. What credit it states is not known while it cannot be reached.</source>
        <translation>Jede Quittung von {0} ist echt. Welches Guthaben dort steht, ist unbekannt, solange keine Verbindung besteht.</translation>
    </message>
    <message>
        <source>Every receipt of {0} is genuine. Those up to {1} are in its signed lists of the days; others were told the same if their newest root is {2} too. What credit it states is not known while it cannot be reached.</source>
        <translation>Jede Quittung von {0} ist echt. Die bis {1} stehen in den unterschriebenen Listen der Tage; anderen wurde dasselbe gesagt, wenn ihre neueste Wurzel ebenfalls {2} ist. Welches Guthaben dort steht, ist unbekannt, solange keine Verbindung besteht.</translation>
    </message>
    <message>
        <source>Your decisions about kinds of work could not be read, so every kind is refused until you allow it again: {0}</source>
        <translation>Ihre Entscheidungen über Arten von Arbeit konnten nicht gelesen werden, deshalb wird jede Art abgelehnt, bis Sie sie wieder erlauben: {0}</translation>
    </message>
    <message>
        <source>Look through them under Coordinators, then choose anew what becomes of new kinds (the setting consent.new_classes).</source>
        <translation>Sehen Sie sie unter Koordinatoren durch, und wählen Sie dann neu, was mit neuen Arten geschieht (die Einstellung consent.new_classes).</translation>
    </message>
    <message>
        <source>Other computers cannot connect to this one: {0}</source>
        <translation>Andere Rechner können sich nicht mit diesem verbinden: {0}</translation>
    </message>
    <message>
        <source>Shoal&apos;s records were damaged. They were set aside as {0}, and new ones have been started.</source>
        <translation>Die Aufzeichnungen von Shoal waren beschädigt. Sie wurden als {0} beiseitegelegt, und neue wurden begonnen.</translation>
    </message>
    <message>
        <source>Shoal&apos;s records cannot be kept: {0}</source>
        <translation>Die Aufzeichnungen von Shoal können nicht geführt werden: {0}</translation>
    </message>
    <message>
        <source>Another program is holding Shoal&apos;s records. What happens meanwhile is remembered and written later.</source>
        <translation>Ein anderes Programm hält die Aufzeichnungen von Shoal fest. Was indessen geschieht, wird behalten und später geschrieben.</translation>
    </message>
    <message>
        <source>Shoal&apos;s records were written by a newer version of Shoal, so nothing is added to them.</source>
        <translation>Die Aufzeichnungen von Shoal stammen von einer neueren Version, darum wird nichts hinzugefügt.</translation>
    </message>
    <message>
        <source>Install the newer version again.</source>
        <translation>Installieren Sie die neuere Version wieder.</translation>
    </message>
    <message>
        <source>This computer runs on battery, and nothing tells how full it is.</source>
        <translation>Dieser Rechner läuft mit Akku, und nichts verrät, wie voll er ist.</translation>
    </message>
    <message>
        <source>Plug it in, or set the lowest charge to 0 under Rules.</source>
        <translation>Schließen Sie ihn ans Netz an, oder setzen Sie unter Regeln die niedrigste Ladung auf 0.</translation>
    </message>
    <message>
        <source>This computer runs on battery, which is at {0}.</source>
        <translation>Dieser Rechner läuft mit Akku, der bei {0} steht.</translation>
    </message>
    <message>
        <source>Work starts when it is above {0}, or when you plug it in.</source>
        <translation>Die Arbeit beginnt über {0}, oder wenn Sie ihn ans Netz anschließen.</translation>
    </message>
    <message>
        <source>Nothing tells whether this computer runs on battery, so it counts as if it did.</source>
        <translation>Nichts verrät, ob dieser Rechner mit Akku läuft, darum gilt es, als täte er es.</translation>
    </message>
    <message>
        <source>If it has no battery, allow work on battery under Rules and set the lowest charge to 0.</source>
        <translation>Hat er keinen Akku, erlauben Sie unter Regeln die Arbeit mit Akku und setzen Sie die niedrigste Ladung auf 0.</translation>
    </message>
    <message>
        <source>You chose other hours for computing. The next begin at {0}.</source>
        <translation>Sie haben andere Zeiten zum Rechnen gewählt. Die nächsten beginnen {0}.</translation>
    </message>
    <message>
        <source>Change the hours under Rules, or choose &apos;always&apos;.</source>
        <translation>Ändern Sie die Zeiten unter Regeln, oder wählen Sie „immer“.</translation>
    </message>
    <message>
        <source>You chose no hours for computing.</source>
        <translation>Sie haben keine Zeiten zum Rechnen gewählt.</translation>
    </message>
    <message>
        <source>Choose hours under Rules.</source>
        <translation>Wählen Sie Zeiten unter Regeln.</translation>
    </message>
    <message>
        <source>Other programs use {0} of the processor.</source>
        <translation>Andere Programme brauchen {0} des Prozessors.</translation>
    </message>
    <message>
        <source>Work starts when they use less than {0}. The limit is under Rules.</source>
        <translation>Die Arbeit beginnt, wenn sie weniger als {0} brauchen. Die Grenze steht unter Regeln.</translation>
    </message>
    <message>
        <source>Nothing tells how much other programs use the processor.</source>
        <translation>Nichts verrät, wie sehr andere Programme den Prozessor brauchen.</translation>
    </message>
    <message>
        <source>Set the limit for other programs to 100 % under Rules to work without it.</source>
        <translation>Setzen Sie unter Regeln die Grenze für andere Programme auf 100 %, um ohne sie zu arbeiten.</translation>
    </message>
    <message>
        <source>The disk for models has only {0} left.</source>
        <translation>Auf der Platte für Modelle sind nur noch {0} frei.</translation>
    </message>
    <message>
        <source>Work starts when {0} are free. Make room, or lower the limit under Rules.</source>
        <translation>Die Arbeit beginnt, wenn {0} frei sind. Schaffen Sie Platz, oder senken Sie die Grenze unter Regeln.</translation>
    </message>
    <message>
        <source>Nothing tells how much room the disk for models has. You want {0} to stay free.</source>
        <translation>Nichts verrät, wie viel Platz die Platte für Modelle hat. Sie wollen, dass {0} frei bleiben.</translation>
    </message>
    <message>
        <source>Set that limit to its default or to 0 under Rules to work without it.</source>
        <translation>Setzen Sie diese Grenze unter Regeln auf ihre Voreinstellung oder auf 0, um ohne sie zu arbeiten.</translation>
    </message>
    <message>
        <source>Shoal used {0} today, which is all that you allow.</source>
        <translation>Shoal hat heute {0} verbraucht, mehr erlauben Sie nicht.</translation>
    </message>
    <message>
        <source>Work starts after midnight, or when you allow more under Rules.</source>
        <translation>Die Arbeit beginnt nach Mitternacht, oder wenn Sie unter Regeln mehr erlauben.</translation>
    </message>
    <message>
        <source>Shoal used {0} this month, which is all that you allow.</source>
        <translation>Shoal hat diesen Monat {0} verbraucht, mehr erlauben Sie nicht.</translation>
    </message>
    <message>
        <source>Work starts with the next month, or when you allow more under Rules.</source>
        <translation>Die Arbeit beginnt mit dem nächsten Monat, oder wenn Sie unter Regeln mehr erlauben.</translation>
    </message>
    <message>
        <source>A game is being played.</source>
        <translation>Es wird gespielt.</translation>
    </message>
    <message>
        <source>Work starts when the game ends.</source>
        <translation>Die Arbeit beginnt, wenn das Spiel endet.</translation>
    </message>
    <message>
        <source>Other programs use {0} of this graphics card.</source>
        <translation>Andere Programme brauchen {0} dieser Grafikkarte.</translation>
    </message>
    <message>
        <source>Nothing tells how much other programs use this graphics card.</source>
        <translation>Nichts verrät, wie sehr andere Programme diese Grafikkarte brauchen.</translation>
    </message>
    <message>
        <source>Set the limit for other programs to its default or to 100 % under Rules to work without it.</source>
        <translation>Setzen Sie unter Regeln die Grenze für andere Programme auf ihre Voreinstellung oder auf 100 %, um ohne sie zu arbeiten.</translation>
    </message>
    <message>
        <source>{0} keeps the screen on.</source>
        <translation>{0} hält den Bildschirm an.</translation>
    </message>
    <message>
        <source>Work starts when it lets go. Or switch off &apos;wait while a program keeps the screen on&apos;.</source>
        <translation>Die Arbeit beginnt, wenn es loslässt. Oder schalten Sie „warten, solange ein Programm den Bildschirm anhält“ aus.</translation>
    </message>
    <message>
        <source>{0} keeps the screen on: {1}</source>
        <translation>{0} hält den Bildschirm an: {1}</translation>
    </message>
    <message>
        <source>Nothing tells whether a program keeps the screen on, such as a film or a call.</source>
        <translation>Nichts verrät, ob ein Programm den Bildschirm anhält, etwa ein Film oder ein Gespräch.</translation>
    </message>
    <message>
        <source>Switch off &apos;wait while a program keeps the screen on&apos; under Rules to work without it.</source>
        <translation>Schalten Sie unter Regeln „warten, solange ein Programm den Bildschirm anhält“ aus, um ohne dies zu arbeiten.</translation>
    </message>
    <message>
        <source>You wanted this computer back at {0}.</source>
        <translation>Sie wollten diesen Rechner um {0} zurück.</translation>
    </message>
    <message>
        <source>Choose another time to leave by, or none.</source>
        <translation>Wählen Sie eine andere Zeit oder keine.</translation>
    </message>
    <message>
        <source>Only {0} of memory are free.</source>
        <translation>Nur {0} Arbeitsspeicher sind frei.</translation>
    </message>
    <message>
        <source>Work starts when {0} are free. Close programs, or lower the limit under Rules.</source>
        <translation>Die Arbeit beginnt, wenn {0} frei sind. Schließen Sie Programme, oder senken Sie die Grenze unter Regeln.</translation>
    </message>
    <message>
        <source>Nothing tells how much memory is free. You want {0} to stay free.</source>
        <translation>Nichts verrät, wie viel Arbeitsspeicher frei ist. Sie wollen, dass {0} frei bleiben.</translation>
    </message>
    <message>
        <source>The network is metered: what it carries may cost you money.</source>
        <translation>Das Netz wird nach Menge abgerechnet: was darüber läuft, kann Sie Geld kosten.</translation>
    </message>
    <message>
        <source>Use another network, or allow metered ones under Rules.</source>
        <translation>Benutzen Sie ein anderes Netz, oder erlauben Sie solche unter Regeln.</translation>
    </message>
    <message>
        <source>You chose other hours for the network. The next begin at {0}.</source>
        <translation>Sie haben andere Zeiten für das Netz gewählt. Die nächsten beginnen {0}.</translation>
    </message>
    <message>
        <source>You chose no hours for the network.</source>
        <translation>Sie haben keine Zeiten für das Netz gewählt.</translation>
    </message>
    <message>
        <source>This computer is not connected to a network.</source>
        <translation>Dieser Rechner ist mit keinem Netz verbunden.</translation>
    </message>
    <message>
        <source>Connect it. Shoal goes on by itself.</source>
        <translation>Verbinden Sie ihn. Shoal geht von selbst weiter.</translation>
    </message>
    <message>
        <source>This computer runs on battery.</source>
        <translation>Dieser Rechner läuft mit Akku.</translation>
    </message>
    <message>
        <source>Plug it in, or allow work on battery under Rules.</source>
        <translation>Schließen Sie ihn ans Netz an, oder erlauben Sie unter Regeln die Arbeit mit Akku.</translation>
    </message>
    <message>
        <source>You used this computer {0} ago.</source>
        <translation>Sie haben diesen Rechner vor {0} benutzt.</translation>
    </message>
    <message>
        <source>Work starts after {0} without input. Or allow work while the computer is in use.</source>
        <translation>Die Arbeit beginnt nach {0} ohne Eingabe. Oder erlauben Sie Arbeit, während der Rechner benutzt wird.</translation>
    </message>
    <message>
        <source>&apos;{0}&apos;, which should tell whether somebody uses this computer, does not answer. So it counts as in use.</source>
        <translation>„{0}“ soll sagen, ob jemand diesen Rechner benutzt, antwortet aber nicht. Darum gilt er als benutzt.</translation>
    </message>
    <message>
        <source>Choose &apos;auto&apos; or another source under Rules, or choose &apos;always&apos;.</source>
        <translation>Wählen Sie unter Regeln „auto“ oder eine andere Quelle, oder wählen Sie „immer“.</translation>
    </message>
    <message>
        <source>Nothing tells whether somebody uses this computer, so it counts as in use.</source>
        <translation>Nichts verrät, ob jemand diesen Rechner benutzt, darum gilt er als benutzt.</translation>
    </message>
    <message>
        <source>Choose &apos;always&apos;, or allow work while the computer is in use.</source>
        <translation>Wählen Sie „immer“, oder erlauben Sie Arbeit, während der Rechner benutzt wird.</translation>
    </message>
    <message>
        <source>This computer is saving power.</source>
        <translation>Dieser Rechner spart Strom.</translation>
    </message>
    <message>
        <source>Choose another power profile, or allow work while saving power under Rules.</source>
        <translation>Wählen Sie ein anderes Energieprofil, oder erlauben Sie unter Regeln Arbeit beim Stromsparen.</translation>
    </message>
    <message>
        <source>Electricity costs {0} a kilowatt-hour now. You allow {1}.</source>
        <translation>Strom kostet jetzt {0} je Kilowattstunde. Sie erlauben {1}.</translation>
    </message>
    <message>
        <source>Work starts when it is cheaper. The prices and the limit are under Rules.</source>
        <translation>Die Arbeit beginnt, wenn er billiger ist. Preise und Grenze stehen unter Regeln.</translation>
    </message>
    <message>
        <source>{0} is running, and you want it to have the computer to itself.</source>
        <translation>{0} läuft, und Sie wollen, dass es den Rechner für sich hat.</translation>
    </message>
    <message>
        <source>Work starts when {0} ends.</source>
        <translation>Die Arbeit beginnt, wenn {0} endet.</translation>
    </message>
    <message>
        <source>Nothing tells whether one of the programs runs that shall have the computer to themselves.</source>
        <translation>Nichts verrät, ob eines der Programme läuft, die den Rechner für sich haben sollen.</translation>
    </message>
    <message>
        <source>Take the programs off the list under Rules to work without it.</source>
        <translation>Nehmen Sie die Programme unter Regeln von der Liste, um ohne dies zu arbeiten.</translation>
    </message>
    <message>
        <source>This computer is about to sleep or to shut down.</source>
        <translation>Dieser Rechner schläft gleich ein oder wird heruntergefahren.</translation>
    </message>
    <message>
        <source>Work goes on when it wakes up.</source>
        <translation>Die Arbeit geht weiter, wenn er aufwacht.</translation>
    </message>
    <message>
        <source>It is too hot: {0}.</source>
        <translation>Es ist zu heiß: {0}.</translation>
    </message>
    <message>
        <source>Work starts at {0}. Let it cool, or raise the limit under Rules.</source>
        <translation>Die Arbeit beginnt bei {0}. Lassen Sie es abkühlen, oder heben Sie die Grenze unter Regeln an.</translation>
    </message>
    <message>
        <source>Nothing tells its temperature. You want it to stay under {0}.</source>
        <translation>Nichts verrät die Temperatur. Sie wollen, dass sie unter {0} bleibt.</translation>
    </message>
    <message>
        <source>Set that limit to its default under Rules to work without it.</source>
        <translation>Setzen Sie diese Grenze unter Regeln auf ihre Voreinstellung, um ohne sie zu arbeiten.</translation>
    </message>
    <message>
        <source>Shoal sent and fetched {0} this month, which is all that you allow.</source>
        <translation>Shoal hat diesen Monat {0} gesendet und geholt, mehr erlauben Sie nicht.</translation>
    </message>
    <message>
        <source>The processor is at {0}.</source>
        <translation>Der Prozessor hat {0}.</translation>
    </message>
    <message>
        <source>The processor&apos;s energy counter can be read.</source>
        <translation>Der Energiezähler des Prozessors ist lesbar.</translation>
    </message>
    <message>
        <source>{0} are free on the disk that keeps shards.</source>
        <translation>{0} sind auf der Platte frei, die Modellteile aufhebt.</translation>
    </message>
    <message>
        <source>A game has asked for GameMode.</source>
        <translation>Ein Spiel hat um GameMode gebeten.</translation>
    </message>
    <message>
        <source>Graphics cards seen: {0}.</source>
        <translation>Grafikkarten gesehen: {0}.</translation>
    </message>
    <message>
        <source>There is no graphics card.</source>
        <translation>Es gibt keine Grafikkarte.</translation>
    </message>
    <message>
        <source>Graphics cards seen: {0}. The hottest is at {1}.</source>
        <translation>Grafikkarten gesehen: {0}. Die heißeste hat {1}.</translation>
    </message>
    <message>
        <source>Nobody touched this computer for {0}.</source>
        <translation>Niemand hat diesen Rechner seit {0} angefasst.</translation>
    </message>
    <message>
        <source>Nobody touched this computer for {0}, and it is locked.</source>
        <translation>Niemand hat diesen Rechner seit {0} angefasst, und er ist gesperrt.</translation>
    </message>
    <message>
        <source>No program keeps the screen on.</source>
        <translation>Kein Programm hält den Bildschirm an.</translation>
    </message>
    <message>
        <source>Other programs use {0} of the processors.</source>
        <translation>Andere Programme brauchen {0} der Prozessoren.</translation>
    </message>
    <message>
        <source>{0} of memory are free.</source>
        <translation>{0} Arbeitsspeicher sind frei.</translation>
    </message>
    <message>
        <source>Online, and not metered.</source>
        <translation>Verbunden, ohne Abrechnung nach Menge.</translation>
    </message>
    <message>
        <source>Online, and metered.</source>
        <translation>Verbunden, mit Abrechnung nach Menge.</translation>
    </message>
    <message>
        <source>Offline.</source>
        <translation>Nicht verbunden.</translation>
    </message>
    <message>
        <source>Online. Nothing tells whether the network is metered.</source>
        <translation>Verbunden. Nichts verrät, ob nach Menge abgerechnet wird.</translation>
    </message>
    <message>
        <source>On battery. Charge: {0}. Power profile: {1}.</source>
        <translation>Mit Akku. Ladung: {0}. Energieprofil: {1}.</translation>
    </message>
    <message>
        <source>On line power. Battery charge: {0}. Power profile: {1}.</source>
        <translation>Am Netz. Ladung des Akkus: {0}. Energieprofil: {1}.</translation>
    </message>
    <message>
        <source>{0} runs.</source>
        <translation>{0} läuft.</translation>
    </message>
    <message>
        <source>No exclusive program runs.</source>
        <translation>Kein Programm läuft, das den Rechner für sich haben soll.</translation>
    </message>
    <message>
        <source>The computer stays awake.</source>
        <translation>Der Rechner bleibt wach.</translation>
    </message>
    <message>
        <source>The computer is about to sleep or to end.</source>
        <translation>Der Rechner schläft gleich ein oder endet.</translation>
    </message>
    <message>
        <source>Shoal was not running.</source>
        <translation>Shoal lief nicht.</translation>
    </message>
    <message>
        <source>You do not allow work of this kind.</source>
        <translation>Sie erlauben Arbeit dieser Art nicht.</translation>
    </message>
    <message>
        <source>The coordinator took it back.</source>
        <translation>Der Koordinator nahm sie zurück.</translation>
    </message>
    <message>
        <source>The owner needs this device.</source>
        <translation>Der Besitzer braucht dieses Gerät.</translation>
    </message>
    <message>
        <source>No step came for too long.</source>
        <translation>Zu lange kam kein Schritt.</translation>
    </message>
    <message>
        <source>Ready. Work may come at any time.</source>
        <translation>Bereit. Arbeit kann jederzeit kommen.</translation>
    </message>
    <message>
        <source>Its results were taken.</source>
        <translation>Die Ergebnisse wurden angenommen.</translation>
    </message>
    <message>
        <source>The device failed at it: {0}</source>
        <translation>Das Gerät ist daran gescheitert: {0}</translation>
    </message>
    <message>
        <source>You left its coordinator.</source>
        <translation>Sie haben den Koordinator verlassen.</translation>
    </message>
    <message>
        <source>It was given back before it was begun.</source>
        <translation>Sie wurde zurückgegeben, bevor sie begonnen war.</translation>
    </message>
    <message>
        <source>It was given back: the coordinator did not hand it out again after a pause.</source>
        <translation>Sie wurde zurückgegeben: Der Koordinator hat sie nach einer Pause nicht wieder ausgegeben.</translation>
    </message>
    <message>
        <source>Another computer was faster. It earns the same if the results agree.</source>
        <translation>Ein anderer Rechner war schneller. Sie zählt ebenso, wenn die Ergebnisse übereinstimmen.</translation>
    </message>
    <message>
        <source>What was computed of a job cannot be stored, so a crash would lose it: {0}</source>
        <translation>Was für einen Auftrag berechnet wurde, lässt sich nicht speichern, ein Absturz würde es verlieren: {0}</translation>
    </message>
    <message>
        <source>Its time was over before it was done.</source>
        <translation>Ihre Zeit war um, bevor sie fertig war.</translation>
    </message>
    <message>
        <source>It was given back, as its device was needed for too long.</source>
        <translation>Sie wurde zurückgegeben, weil ihr Gerät zu lange gebraucht wurde.</translation>
    </message>
    <message>
        <source>It cannot be computed here: {0}</source>
        <translation>Sie kann hier nicht berechnet werden: {0}</translation>
    </message>
    <message>
        <source>The coordinator rejected its results.</source>
        <translation>Der Koordinator hat die Ergebnisse abgelehnt.</translation>
    </message>
    <message>
        <source>It was given back: it takes this device too long.</source>
        <translation>Sie wurde zurückgegeben: Dieses Gerät braucht zu lange dafür.</translation>
    </message>
    <message>
        <source>Working on {0}.</source>
        <translation>Arbeitet an {0}.</translation>
    </message>
    <message>
        <source>The coordinator stopped unexpectedly and does not know what was done.</source>
        <translation>Der Koordinator hörte unerwartet auf und weiß nicht, was getan wurde.</translation>
    </message>
    <message>
        <source>The coordinator&apos;s administrator banned this computer or its account.</source>
        <translation>Die Verwaltung des Koordinators hat diesen Rechner oder sein Konto gesperrt.</translation>
    </message>
    <message>
        <source>{0} signed a list of a day&apos;s receipts that does not fit the others: {1}.</source>
        <translation>{0} hat eine Liste der Quittungen eines Tages unterschrieben, die nicht zu den anderen passt: {1}.</translation>
    </message>
    <message>
        <source>{1} receipts of {0} are not in the lists that it signed for their days.</source>
        <translation>{1} Quittungen von {0} stehen nicht in den Listen, die dort für ihre Tage unterschrieben wurden.</translation>
    </message>
    <message>
        <source>This computer answered what cannot be right elsewhere in the session.</source>
        <translation>Dieser Rechner antwortete anderswo in der Sitzung, was nicht stimmen kann.</translation>
    </message>
    <message>
        <source>It answered what cannot be right.</source>
        <translation>Es antwortete, was nicht stimmen kann.</translation>
    </message>
    <message>
        <source>You allow none of the work that this coordinator has.</source>
        <translation>Sie erlauben nichts von der Arbeit, die dieser Koordinator hat.</translation>
    </message>
    <message>
        <source>Allow a kind of work under Coordinators.</source>
        <translation>Erlauben Sie unter Koordinatoren eine Art Arbeit.</translation>
    </message>
    <message>
        <source>It does not stay up here, or its self-test failed.</source>
        <translation>Es hält sich hier nicht, oder sein Selbsttest schlug fehl.</translation>
    </message>
    <message>
        <source>It ends what it has begun and gets nothing more.</source>
        <translation>Es beendet, was es begonnen hat, und bekommt nichts mehr.</translation>
    </message>
    <message>
        <source>You want it back in {0}: it gets only work that ends sooner.</source>
        <translation>Sie wollen es in {0} zurück: es bekommt nur Arbeit, die früher endet.</translation>
    </message>
    <message>
        <source>No part of a model fits into the {0} that are free there.</source>
        <translation>Kein Teil eines Modells passt in die {0}, die dort frei sind.</translation>
    </message>
    <message>
        <source>This coordinator has published no model yet.</source>
        <translation>Dieser Koordinator hat noch kein Modell veröffentlicht.</translation>
    </message>
    <message>
        <source>Ready. Nobody asks for work now.</source>
        <translation>Bereit. Zurzeit fragt niemand nach Arbeit.</translation>
    </message>
    <message>
        <source>Its worker does not run.</source>
        <translation>Sein Arbeitsprozess läuft nicht.</translation>
    </message>
    <message>
        <source>Its results are not the same bits as those of other devices, which this work needs.</source>
        <translation>Seine Ergebnisse sind nicht dieselben Bits wie die anderer Geräte, was diese Arbeit braucht.</translation>
    </message>
    <message>
        <source>Ready. Other devices do what is asked for now.</source>
        <translation>Bereit. Andere Geräte tun, was zurzeit gebraucht wird.</translation>
    </message>
    <message>
        <source>Your rules keep it from working now.</source>
        <translation>Ihre Regeln lassen es zurzeit nicht arbeiten.</translation>
    </message>
    <message>
        <source>It starts, tests or measures itself.</source>
        <translation>Es startet, prüft oder misst sich.</translation>
    </message>
    <message>
        <source>This coordinator is about to stop and begins nothing new.</source>
        <translation>Dieser Koordinator hört gleich auf und beginnt nichts Neues.</translation>
    </message>
</context>
<context>
    <name>pages</name>
    <message>
        <source>Overview</source>
        <translation>Übersicht</translation>
    </message>
    <message>
        <source>Statistics</source>
        <translation>Statistik</translation>
    </message>
    <message>
        <source>Work</source>
        <translation>Arbeit</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>Regeln</translation>
    </message>
    <message>
        <source>Coordinators</source>
        <translation>Koordinatoren</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
</context>
<context>
    <name>reasons</name>
    <message>
        <source>the coordinator closed the connection</source>
        <translation>der Koordinator hat die Verbindung geschlossen</translation>
    </message>
    <message>
        <source>the name of {0} cannot be resolved</source>
        <translation>der Name von {0} lässt sich nicht auflösen</translation>
    </message>
    <message>
        <source>nothing listens at {0} (connection refused)</source>
        <translation>bei {0} nimmt niemand Verbindungen an</translation>
    </message>
    <message>
        <source>the network does not reach {0}</source>
        <translation>das Netz reicht nicht bis zu {0}</translation>
    </message>
    <message>
        <source>{0} did not answer within 15 seconds</source>
        <translation>{0} hat binnen 15 Sekunden nicht geantwortet</translation>
    </message>
    <message>
        <source>{0} closed the connection; it may be no Shoal coordinator</source>
        <translation>{0} hat die Verbindung geschlossen; vielleicht ist dort kein Koordinator von Shoal</translation>
    </message>
    <message>
        <source>{0}: the other side is no Shoal coordinator</source>
        <translation>{0}: dort ist kein Koordinator von Shoal</translation>
    </message>
    <message>
        <source>{0}: the coordinator&apos;s certificate does not match the pin of the attach URL (wrong pin): the URL is for another coordinator, or somebody sits in between</source>
        <translation>{0}: Das Zertifikat des Koordinators passt nicht zur Prüfsumme in der URL: Die URL gehört zu einem anderen Koordinator, oder jemand sitzt dazwischen</translation>
    </message>
    <message>
        <source>the coordinator at {0} speaks version {1} of the protocol, this client {2}: update the older of the two</source>
        <translation>der Koordinator bei {0} spricht Fassung {1} des Protokolls, dieser Client {2}: Bringen Sie den älteren auf den neuen Stand</translation>
    </message>
    <message>
        <source>the client speaks protocol {0}, the coordinator {1}: the {2} is older and must be updated</source>
        <translation>der Client spricht das Protokoll {0}, der Koordinator {1}: Der ältere von beiden ({2}) muss erneuert werden</translation>
    </message>
    <message>
        <source>the login&apos;s signature does not match the host&apos;s key</source>
        <translation>die Unterschrift der Anmeldung passt nicht zum Schlüssel dieses Computers</translation>
    </message>
    <message>
        <source>this host is banned by the coordinator&apos;s administrator</source>
        <translation>wer den Koordinator verwaltet, hat diesen Computer gesperrt</translation>
    </message>
    <message>
        <source>the account that this host belongs to is banned by the coordinator&apos;s administrator</source>
        <translation>wer den Koordinator verwaltet, hat das Konto gesperrt, zu dem dieser Computer gehört</translation>
    </message>
    <message>
        <source>this host is not known here, and its attach URL carries no invite; ask the administrator for a new URL</source>
        <translation>dieser Computer ist dort nicht bekannt, und die URL enthält keine Einladung; bitten Sie den Verwalter um eine neue URL</translation>
    </message>
    <message>
        <source>the attach URL&apos;s invite is not one of this coordinator; ask its administrator for a new URL</source>
        <translation>die Einladung in der URL ist keine dieses Koordinators; bitten Sie den Verwalter um eine neue URL</translation>
    </message>
    <message>
        <source>the attach URL&apos;s invite has expired; ask the administrator for a new URL</source>
        <translation>die Einladung in der URL ist abgelaufen; bitten Sie den Verwalter um eine neue URL</translation>
    </message>
    <message>
        <source>the attach URL&apos;s invite has been used as often as it may be; ask the administrator for a new URL</source>
        <translation>die Einladung in der URL wurde so oft benutzt, wie sie es darf; bitten Sie den Verwalter um eine neue URL</translation>
    </message>
    <message>
        <source>the attach URL&apos;s invite belongs to an account that is banned by the coordinator&apos;s administrator</source>
        <translation>die Einladung in der URL gehört zu einem Konto, das der Verwalter des Koordinators gesperrt hat</translation>
    </message>
    <message>
        <source>{0} signs receipts with another key than before; those that it gave could not be checked with it</source>
        <translation>{0} unterschreibt Quittungen mit einem anderen Schlüssel als früher; die bisherigen ließen sich damit nicht prüfen</translation>
    </message>
    <message>
        <source>it has not answered yet</source>
        <translation>er hat noch nicht geantwortet</translation>
    </message>
    <message>
        <source>it does not answer</source>
        <translation>er antwortet nicht</translation>
    </message>
    <message>
        <source>it has told nothing for {0} s</source>
        <translation>er hat seit {0} s nichts gesagt</translation>
    </message>
    <message>
        <source>it is being measured</source>
        <translation>es wird gerade gemessen</translation>
    </message>
    <message>
        <source>the program that watches this computer ended: {0}</source>
        <translation>das Programm, das diesen Computer beobachtet, hat geendet: {0}</translation>
    </message>
    <message>
        <source>it closed its pipe</source>
        <translation>es hat seine Leitung geschlossen</translation>
    </message>
    <message>
        <source>it wrote a line without an end</source>
        <translation>es hat eine Zeile ohne Ende geschrieben</translation>
    </message>
    <message>
        <source>{0} has not answered for {1} s</source>
        <translation>{0} hat seit {1} s nicht geantwortet</translation>
    </message>
    <message>
        <source>{0} does not answer</source>
        <translation>{0} antwortet nicht</translation>
    </message>
    <message>
        <source>{0} cannot be reached: {1}</source>
        <translation>{0} ist nicht zu erreichen: {1}</translation>
    </message>
    <message>
        <source>{0} gave an answer that makes no sense</source>
        <translation>{0} hat eine Antwort ohne Sinn gegeben</translation>
    </message>
    <message>
        <source>{0} is not running</source>
        <translation>{0} läuft nicht</translation>
    </message>
    <message>
        <source>{0} does not know what it was asked</source>
        <translation>{0} kennt nicht, wonach gefragt wurde</translation>
    </message>
    <message>
        <source>{0} refuses to answer</source>
        <translation>{0} verweigert die Antwort</translation>
    </message>
    <message>
        <source>{0} failed: {1}</source>
        <translation>{0} ist gescheitert: {1}</translation>
    </message>
    <message>
        <source>there is no such thing as {0}</source>
        <translation>{0} gibt es hier nicht</translation>
    </message>
    <message>
        <source>no time was left to ask {0}</source>
        <translation>es blieb keine Zeit, {0} zu fragen</translation>
    </message>
    <message>
        <source>the system bus</source>
        <translation>der Systembus</translation>
    </message>
    <message>
        <source>the session bus</source>
        <translation>der Sitzungsbus</translation>
    </message>
    <message>
        <source>the X server</source>
        <translation>der X-Server</translation>
    </message>
    <message>
        <source>the Wayland desktop</source>
        <translation>der Wayland-Desktop</translation>
    </message>
    <message>
        <source>the NVIDIA driver</source>
        <translation>der NVIDIA-Treiber</translation>
    </message>
    <message>
        <source>a graphics driver</source>
        <translation>ein Grafiktreiber</translation>
    </message>
    <message>
        <source>the system shows neither temperature nor energy of the processor</source>
        <translation>das System zeigt weder Temperatur noch Energie des Prozessors</translation>
    </message>
    <message>
        <source>no folder for shards is known yet</source>
        <translation>noch ist kein Ordner für Modellteile bekannt</translation>
    </message>
    <message>
        <source>the NVIDIA card is switched off to save power</source>
        <translation>die NVIDIA-Karte ist ausgeschaltet, um Strom zu sparen</translation>
    </message>
    <message>
        <source>the NVIDIA driver fails: {0}</source>
        <translation>der NVIDIA-Treiber versagt: {0}</translation>
    </message>
    <message>
        <source>NVIDIA&apos;s management library is not installed</source>
        <translation>NVIDIAs Verwaltungsbibliothek ist nicht installiert</translation>
    </message>
    <message>
        <source>nobody is logged in to a terminal</source>
        <translation>an keinem Terminal ist jemand angemeldet</translation>
    </message>
    <message>
        <source>this Wayland desktop does not offer ext-idle-notify</source>
        <translation>dieser Wayland-Desktop bietet kein ext-idle-notify an</translation>
    </message>
    <message>
        <source>this Wayland desktop has no keyboard or mouse</source>
        <translation>dieser Wayland-Desktop hat weder Tastatur noch Maus</translation>
    </message>
    <message>
        <source>no Wayland desktop runs here</source>
        <translation>hier läuft kein Wayland-Desktop</translation>
    </message>
    <message>
        <source>the Wayland desktop &quot;{0}&quot; cannot be reached</source>
        <translation>der Wayland-Desktop „{0}“ ist nicht zu erreichen</translation>
    </message>
    <message>
        <source>the X server does not tell its idle time</source>
        <translation>der X-Server sagt nicht, wie lange niemand da war</translation>
    </message>
    <message>
        <source>this is a Wayland desktop, whose X server does not see all input</source>
        <translation>dies ist ein Wayland-Desktop, dessen X-Server nicht alle Eingaben sieht</translation>
    </message>
    <message>
        <source>no X server is named here (DISPLAY is not set). If you use one, run: systemctl --user import-environment DISPLAY XAUTHORITY, and start Shoal again</source>
        <translation>hier ist kein X-Server genannt (DISPLAY ist nicht gesetzt). Wenn Sie einen benutzen, rufen Sie auf: systemctl --user import-environment DISPLAY XAUTHORITY, und starten Sie Shoal neu</translation>
    </message>
    <message>
        <source>the X server is another computer&apos;s</source>
        <translation>der X-Server gehört einem anderen Computer</translation>
    </message>
    <message>
        <source>the X server cannot be reached</source>
        <translation>der X-Server ist nicht zu erreichen</translation>
    </message>
    <message>
        <source>the X server has no screen</source>
        <translation>der X-Server hat keinen Bildschirm</translation>
    </message>
    <message>
        <source>the X server was lost</source>
        <translation>der X-Server ging verloren</translation>
    </message>
    <message>
        <source>the chosen source, {0}, cannot be used: {1}. Choose another one, or &quot;auto&quot;</source>
        <translation>die gewählte Quelle, {0}, ist nicht zu gebrauchen: {1}. Wählen Sie eine andere oder „auto“</translation>
    </message>
    <message>
        <source>there is no source called &quot;{0}&quot;. Choose another one, or &quot;auto&quot;</source>
        <translation>es gibt keine Quelle namens „{0}“. Wählen Sie eine andere oder „auto“</translation>
    </message>
    <message>
        <source>nothing on this computer tells whether a program keeps the screen on</source>
        <translation>nichts auf diesem Computer sagt, ob ein Programm den Bildschirm anlässt</translation>
    </message>
    <message>
        <source>the login service lists inhibitors that make no sense</source>
        <translation>der Anmeldedienst nennt Sperren ohne Sinn</translation>
    </message>
    <message>
        <source>GNOME&apos;s session manager answers what makes no sense</source>
        <translation>die Sitzungsverwaltung von GNOME gibt eine Antwort ohne Sinn</translation>
    </message>
    <message>
        <source>the power manager answers what makes no sense</source>
        <translation>die Energieverwaltung gibt eine Antwort ohne Sinn</translation>
    </message>
    <message>
        <source>the system does not tell how busy its processors are</source>
        <translation>das System sagt nicht, wie beschäftigt seine Prozessoren sind</translation>
    </message>
    <message>
        <source>the system does not tell how much memory is free</source>
        <translation>das System sagt nicht, wie viel Speicher frei ist</translation>
    </message>
    <message>
        <source>the system does not tell which programs run</source>
        <translation>das System sagt nicht, welche Programme laufen</translation>
    </message>
    <message>
        <source>neither NetworkManager nor the system&apos;s routes tell whether it is online</source>
        <translation>weder NetworkManager noch die Routen des Systems sagen, ob es verbunden ist</translation>
    </message>
    <message>
        <source>the power profile is not known: {0}</source>
        <translation>das Energieprofil ist nicht bekannt: {0}</translation>
    </message>
    <message>
        <source>nothing here says when the computer is about to sleep: {0}</source>
        <translation>nichts hier sagt, wann der Computer schlafen geht: {0}</translation>
    </message>
    <message>
        <source>the computer may sleep too early: {0}</source>
        <translation>der Computer schläft vielleicht zu früh ein: {0}</translation>
    </message>
    <message>
        <source>the login service gave nothing to hold it by</source>
        <translation>der Anmeldedienst gab nichts, womit sich das aufhalten ließe</translation>
    </message>
    <message>
        <source>its worker is starting</source>
        <translation>sein Arbeitsprozess startet</translation>
    </message>
    <message>
        <source>its worker does not stay up</source>
        <translation>sein Arbeitsprozess bleibt nicht am Leben</translation>
    </message>
    <message>
        <source>its worker gave no sign of life for {0}</source>
        <translation>sein Arbeitsprozess gab {0} lang kein Lebenszeichen</translation>
    </message>
    <message>
        <source>its worker ended with {0}</source>
        <translation>sein Arbeitsprozess endete mit {0}</translation>
    </message>
    <message>
        <source>its worker gave a public key of a wrong size</source>
        <translation>sein Arbeitsprozess gab einen öffentlichen Schlüssel von falscher Länge</translation>
    </message>
    <message>
        <source>its worker opened device {0} instead</source>
        <translation>sein Arbeitsprozess hat stattdessen das Gerät {0} geöffnet</translation>
    </message>
</context>
<context>
    <name>settings</name>
    <message>
        <source>While in use</source>
        <translation>Während der Benutzung</translation>
    </message>
    <message>
        <source>Programs and load</source>
        <translation>Programme und Last</translation>
    </message>
    <message>
        <source>Power and heat</source>
        <translation>Strom und Wärme</translation>
    </message>
    <message>
        <source>Hours</source>
        <translation>Zeiten</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>Memory and disk</source>
        <translation>Speicher und Platte</translation>
    </message>
    <message>
        <source>Energy and cost</source>
        <translation>Energie und Kosten</translation>
    </message>
    <message>
        <source>Advanced</source>
        <translation>Weiteres</translation>
    </message>
    <message>
        <source>Attach URLs to join at start, beside those that `shoal-client attach` stored.</source>
        <translation>URLs von Koordinatoren, denen beim Start beigetreten wird, neben denen, die `shoal-client attach` gespeichert hat.</translation>
    </message>
    <message>
        <source>Where shards are kept. Empty: &quot;shards&quot; in this user&apos;s cache folder.</source>
        <translation>Wo Modellteile aufgehoben werden. Leer: „shards“ im Zwischenspeicher-Ordner dieses Benutzers.</translation>
    </message>
    <message>
        <source>The most that shards may take on disk. The least recently used go first.</source>
        <translation>Wie viel Modellteile auf der Platte höchstens einnehmen. Die am längsten unbenutzten gehen zuerst.</translation>
    </message>
    <message>
        <source>What must stay free on that disk, whatever the limit above says.</source>
        <translation>Was auf dieser Platte frei bleiben muss, was auch die Grenze oben sagt.</translation>
    </message>
    <message>
        <source>Which devices to lend: ids, selectors such as &quot;vulkan:0&quot;, or planes such as &quot;cpu&quot; and
&quot;vulkan&quot;. Empty: every real GPU, or the CPU when there is none.</source>
        <translation>Welche Geräte verliehen werden: Kennungen, Wähler wie „vulkan:0“, oder Ebenen wie „cpu“ und
„vulkan“. Leer: jede echte Grafikkarte, oder der Prozessor, wenn es keine gibt.</translation>
    </message>
    <message>
        <source>Threads for computing on the CPU. 0: as many as it has.</source>
        <translation>Threads zum Rechnen auf dem Prozessor. 0: so viele, wie er hat.</translation>
    </message>
    <message>
        <source>The worker&apos;s program. Empty: shoal-worker beside this program.</source>
        <translation>Das Programm des Arbeitsprozesses. Leer: shoal-worker neben diesem Programm.</translation>
    </message>
    <message>
        <source>The program that watches the computer. Empty: shoal-sensors beside this program.</source>
        <translation>Das Programm, das den Rechner beobachtet. Leer: shoal-sensors neben diesem Programm.</translation>
    </message>
    <message>
        <source>The most memory that one worker may allocate on the host. 0: no limit.</source>
        <translation>Wie viel Speicher ein Arbeitsprozess auf dem Rechner höchstens belegt. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>A worker that gives no sign of life for this long is ended and started anew.</source>
        <translation>Ein Arbeitsprozess, der so lange kein Lebenszeichen gibt, wird beendet und neu gestartet.</translation>
    </message>
    <message>
        <source>Work on GPUs while somebody uses this computer.</source>
        <translation>Auf Grafikkarten arbeiten, während jemand diesen Rechner benutzt.</translation>
    </message>
    <message>
        <source>Work on the CPU while somebody uses this computer.</source>
        <translation>Auf dem Prozessor arbeiten, während jemand diesen Rechner benutzt.</translation>
    </message>
    <message>
        <source>After so long without keyboard, mouse or touch the computer counts as not in use.</source>
        <translation>Nach so langer Zeit ohne Tastatur, Maus oder Berührung gilt der Rechner als nicht benutzt.</translation>
    </message>
    <message>
        <source>Who tells how long nobody touched the computer. &quot;auto&quot; takes the first that works.</source>
        <translation>Wer sagt, wie lange niemand den Rechner angefasst hat. „auto“ nimmt die erste Quelle, die geht.</translation>
    </message>
    <message>
        <source>Wait while a program keeps the screen on: a film, a call.</source>
        <translation>Warten, solange ein Programm den Bildschirm anhält: ein Film, ein Gespräch.</translation>
    </message>
    <message>
        <source>Work on battery.</source>
        <translation>Mit Akku arbeiten.</translation>
    </message>
    <message>
        <source>Where work on battery is allowed: only above this charge.</source>
        <translation>Wo Arbeit mit Akku erlaubt ist: nur über dieser Ladung.</translation>
    </message>
    <message>
        <source>Work while the power-saver profile is on.</source>
        <translation>Arbeiten, während das Stromsparprofil an ist.</translation>
    </message>
    <message>
        <source>Programs that have the computer to themselves: full names of executables, such as
&quot;blender&quot; or &quot;/opt/game/bin/game&quot;. While one runs, nothing is computed.</source>
        <translation>Programme, die den Rechner für sich haben: volle Namen ausführbarer Dateien, etwa
„blender“ oder „/opt/game/bin/game“. Solange eines läuft, wird nicht gerechnet.</translation>
    </message>
    <message>
        <source>The same for GPUs alone: the CPU goes on.</source>
        <translation>Dasselbe nur für Grafikkarten: der Prozessor rechnet weiter.</translation>
    </message>
    <message>
        <source>Wait while a game has asked for GameMode.</source>
        <translation>Warten, solange ein Spiel um GameMode gebeten hat.</translation>
    </message>
    <message>
        <source>Wait while other programs use more than this percentage of all processors. 100: never.</source>
        <translation>Warten, solange andere Programme mehr als diesen Anteil aller Prozessoren brauchen. 100: nie.</translation>
    </message>
    <message>
        <source>Wait while other programs use more than this percentage of the GPU. 100: never.</source>
        <translation>Warten, solange andere Programme mehr als diesen Anteil der Grafikkarte brauchen. 100: nie.</translation>
    </message>
    <message>
        <source>Stop a GPU at this temperature in degrees Celsius; it goes on 10 degrees below.</source>
        <translation>Eine Grafikkarte bei dieser Temperatur in Grad Celsius anhalten; 10 Grad darunter geht es weiter.</translation>
    </message>
    <message>
        <source>The same for the CPU.</source>
        <translation>Dasselbe für den Prozessor.</translation>
    </message>
    <message>
        <source>When to compute, as &quot;mon 08:00-17:00&quot; or &quot;mon-fri 22:00-06:00&quot;. Empty: at any time.</source>
        <translation>Wann gerechnet wird, wie „mon 08:00-17:00“ oder „mon-fri 22:00-06:00“. Leer: jederzeit.</translation>
    </message>
    <message>
        <source>When to use the network, likewise. Outside, no work is taken and nothing is fetched.</source>
        <translation>Wann das Netz benutzt wird, ebenso. Außerhalb wird keine Arbeit angenommen und nichts geholt.</translation>
    </message>
    <message>
        <source>Use the network while it is metered.</source>
        <translation>Das Netz benutzen, während nach Menge abgerechnet wird.</translation>
    </message>
    <message>
        <source>How many minutes of work on jobs each device keeps ahead, so that it has some while a
coordinator is away.</source>
        <translation>Für wie viele Minuten jedes Gerät Arbeit an Aufträgen im Voraus hält, damit es welche hat,
während ein Koordinator weg ist.</translation>
    </message>
    <message>
        <source>How often what was computed of a job is stored, so that a crash loses no more than that.</source>
        <translation>Wie oft gespeichert wird, was für einen Auftrag berechnet wurde: Mehr verliert ein Absturz nicht.</translation>
    </message>
    <message>
        <source>Fetch no faster than this. 0: no limit.</source>
        <translation>Nicht schneller holen als so. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>Send no faster than this. 0: no limit.</source>
        <translation>Nicht schneller senden als so. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>Fetch and send no more than this in a calendar month. 0: no limit.</source>
        <translation>In einem Kalendermonat nicht mehr holen und senden. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>Wait while less memory than this is free.</source>
        <translation>Warten, solange weniger Arbeitsspeicher frei ist.</translation>
    </message>
    <message>
        <source>What is left of a GPU&apos;s memory for the display and other programs.</source>
        <translation>Was vom Speicher einer Grafikkarte für den Bildschirm und andere Programme bleibt.</translation>
    </message>
    <message>
        <source>When the owner comes back, nothing computes after so long: what still does is ended.</source>
        <translation>Kommt der Besitzer zurück, rechnet nach so langer Zeit nichts mehr: was es noch tut, wird beendet.</translation>
    </message>
    <message>
        <source>And the devices&apos; memory is free after so long.</source>
        <translation>Und der Speicher der Geräte ist nach so langer Zeit frei.</translation>
    </message>
    <message>
        <source>Compute only as much as keeps each device at this temperature in degrees Celsius. 0: off.</source>
        <translation>Nur so viel rechnen, dass jedes Gerät bei dieser Temperatur in Grad Celsius bleibt. 0: aus.</translation>
    </message>
    <message>
        <source>Compute only as much as keeps each device at this power. 0: off.</source>
        <translation>Nur so viel rechnen, dass jedes Gerät bei dieser Leistung bleibt. 0: aus.</translation>
    </message>
    <message>
        <source>Compute at most this part of the time, pausing between operations.</source>
        <translation>Höchstens diesen Teil der Zeit rechnen, mit Pausen dazwischen.</translation>
    </message>
    <message>
        <source>What a kilowatt-hour costs.</source>
        <translation>Was eine Kilowattstunde kostet.</translation>
    </message>
    <message>
        <source>In which currency.</source>
        <translation>In welcher Währung.</translation>
    </message>
    <message>
        <source>Other prices at some hours, as &quot;mon-sun 22:00-06:00 0.21&quot;. The first that fits counts.</source>
        <translation>Andere Preise zu manchen Zeiten, wie „mon-sun 22:00-06:00 0.21“. Der erste passende zählt.</translation>
    </message>
    <message>
        <source>Wait while a kilowatt-hour costs more than this. 0: never.</source>
        <translation>Warten, solange eine Kilowattstunde mehr kostet. 0: nie.</translation>
    </message>
    <message>
        <source>Use no more energy than this in a day. 0: no limit.</source>
        <translation>An einem Tag nicht mehr Energie verbrauchen. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>Nor than this in a calendar month. 0: no limit.</source>
        <translation>Noch mehr als dies in einem Kalendermonat. 0: keine Grenze.</translation>
    </message>
    <message>
        <source>What the CPU draws while it computes, where no counter can be read.</source>
        <translation>Was der Prozessor beim Rechnen verbraucht, wo kein Zähler lesbar ist.</translation>
    </message>
    <message>
        <source>The same for a GPU.</source>
        <translation>Dasselbe für eine Grafikkarte.</translation>
    </message>
    <message>
        <source>Whether work of a class that you have not judged yet is taken.</source>
        <translation>Ob Arbeit einer Art angenommen wird, über die Sie noch nicht entschieden haben.</translation>
    </message>
    <message>
        <source>Exchange the data of shared work with other computers directly where that works, instead of
through the coordinator. They learn this computer&apos;s address.</source>
        <translation>Daten gemeinsamer Arbeit mit anderen Rechnern direkt austauschen, wo das geht, statt
über den Koordinator. Diese erfahren dabei die Adresse dieses Rechners.</translation>
    </message>
    <message>
        <source>Where those computers may connect for that, as &quot;0.0.0.0:7412&quot;. Empty: nowhere; this
computer only connects to them.</source>
        <translation>Wo diese Rechner sich dafür verbinden dürfen, wie „0.0.0.0:7412“. Leer: nirgends; dieser
Rechner verbindet sich nur mit ihnen.</translation>
    </message>
    <message>
        <source>Where user interfaces of other machines may connect after pairing, as &quot;0.0.0.0:7411&quot;.
Empty: nowhere.</source>
        <translation>Wo Fenster anderer Rechner sich nach dem Koppeln verbinden dürfen, wie „0.0.0.0:7411“.
Leer: nirgends.</translation>
    </message>
    <message>
        <source>GPUs while you use the computer</source>
        <translation>Grafikkarten, während Sie den Rechner benutzen</translation>
    </message>
    <message>
        <source>CPU while you use the computer</source>
        <translation>Prozessor, während Sie den Rechner benutzen</translation>
    </message>
    <message>
        <source>Not in use after</source>
        <translation>Nicht benutzt nach</translation>
    </message>
    <message>
        <source>s</source>
        <translation>s</translation>
    </message>
    <message>
        <source>Who tells that you are away</source>
        <translation>Wer sagt, dass Sie fort sind</translation>
    </message>
    <message>
        <source>Wait during films and calls</source>
        <translation>Bei Filmen und Gesprächen warten</translation>
    </message>
    <message>
        <source>Stop computing within</source>
        <translation>Mit Rechnen aufhören binnen</translation>
    </message>
    <message>
        <source>ms</source>
        <translation>ms</translation>
    </message>
    <message>
        <source>Free the memory within</source>
        <translation>Den Speicher freigeben binnen</translation>
    </message>
    <message>
        <source>Programs that have the computer to themselves</source>
        <translation>Programme, die den Rechner für sich haben</translation>
    </message>
    <message>
        <source>Programs that have the GPUs to themselves</source>
        <translation>Programme, die die Grafikkarten für sich haben</translation>
    </message>
    <message>
        <source>Wait during games</source>
        <translation>Bei Spielen warten</translation>
    </message>
    <message>
        <source>CPU load of other programs, at most</source>
        <translation>Prozessorlast anderer Programme, höchstens</translation>
    </message>
    <message>
        <source>%</source>
        <translation>%</translation>
    </message>
    <message>
        <source>GPU load of other programs, at most</source>
        <translation>Grafiklast anderer Programme, höchstens</translation>
    </message>
    <message>
        <source>Work on battery</source>
        <translation>Mit Akku arbeiten</translation>
    </message>
    <message>
        <source>Battery charge, at least</source>
        <translation>Ladung des Akkus, mindestens</translation>
    </message>
    <message>
        <source>Work in power-saver mode</source>
        <translation>Beim Stromsparen arbeiten</translation>
    </message>
    <message>
        <source>GPU temperature, at most</source>
        <translation>Temperatur der Grafikkarte, höchstens</translation>
    </message>
    <message>
        <source>°C</source>
        <translation>°C</translation>
    </message>
    <message>
        <source>CPU temperature, at most</source>
        <translation>Temperatur des Prozessors, höchstens</translation>
    </message>
    <message>
        <source>Hold the temperature at</source>
        <translation>Temperatur halten bei</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
    </message>
    <message>
        <source>Hold the power at</source>
        <translation>Leistung halten bei</translation>
    </message>
    <message>
        <source>W</source>
        <translation>W</translation>
    </message>
    <message>
        <source>Compute at most this part of the time</source>
        <translation>Höchstens diesen Teil der Zeit rechnen</translation>
    </message>
    <message>
        <source>Hours to compute</source>
        <translation>Zeiten zum Rechnen</translation>
    </message>
    <message>
        <source>Hours to use the network</source>
        <translation>Zeiten für das Netz</translation>
    </message>
    <message>
        <source>Use metered connections</source>
        <translation>Nach Menge abgerechnete Netze benutzen</translation>
    </message>
    <message>
        <source>Download rate, at most</source>
        <translation>Herunterladen, höchstens</translation>
    </message>
    <message>
        <source>MB/s</source>
        <translation>MB/s</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>keine Grenze</translation>
    </message>
    <message>
        <source>Upload rate, at most</source>
        <translation>Hochladen, höchstens</translation>
    </message>
    <message>
        <source>Transfer in a month, at most</source>
        <translation>Übertragen im Monat, höchstens</translation>
    </message>
    <message>
        <source>GB</source>
        <translation>GB</translation>
    </message>
    <message>
        <source>Memory that stays free</source>
        <translation>Arbeitsspeicher, der frei bleibt</translation>
    </message>
    <message>
        <source>GPU memory that stays free</source>
        <translation>Grafikspeicher, der frei bleibt</translation>
    </message>
    <message>
        <source>Disk space for models, at most</source>
        <translation>Plattenplatz für Modelle, höchstens</translation>
    </message>
    <message>
        <source>Disk space that stays free</source>
        <translation>Plattenplatz, der frei bleibt</translation>
    </message>
    <message>
        <source>Folder for models</source>
        <translation>Ordner für Modelle</translation>
    </message>
    <message>
        <source>Price of a kilowatt-hour</source>
        <translation>Preis einer Kilowattstunde</translation>
    </message>
    <message>
        <source>Currency</source>
        <translation>Währung</translation>
    </message>
    <message>
        <source>Other prices at some hours</source>
        <translation>Andere Preise zu manchen Zeiten</translation>
    </message>
    <message>
        <source>Wait while a kilowatt-hour costs more than</source>
        <translation>Warten, solange eine Kilowattstunde mehr kostet als</translation>
    </message>
    <message>
        <source>never</source>
        <translation>nie</translation>
    </message>
    <message>
        <source>Energy in a day, at most</source>
        <translation>Energie am Tag, höchstens</translation>
    </message>
    <message>
        <source>kWh</source>
        <translation>kWh</translation>
    </message>
    <message>
        <source>Energy in a month, at most</source>
        <translation>Energie im Monat, höchstens</translation>
    </message>
    <message>
        <source>Power of the CPU while it computes</source>
        <translation>Leistung des Prozessors beim Rechnen</translation>
    </message>
    <message>
        <source>Power of a GPU while it computes</source>
        <translation>Leistung einer Grafikkarte beim Rechnen</translation>
    </message>
    <message>
        <source>Devices to lend</source>
        <translation>Geräte zum Verleihen</translation>
    </message>
    <message>
        <source>Threads on the CPU</source>
        <translation>Threads auf dem Prozessor</translation>
    </message>
    <message>
        <source>all</source>
        <translation>alle</translation>
    </message>
    <message>
        <source>Work that you have not judged yet</source>
        <translation>Arbeit, über die Sie noch nicht entschieden haben</translation>
    </message>
    <message>
        <source>Coordinators to join at start</source>
        <translation>Koordinatoren, denen beim Start beigetreten wird</translation>
    </message>
    <message>
        <source>Program that computes</source>
        <translation>Programm, das rechnet</translation>
    </message>
    <message>
        <source>Memory of one worker, at most</source>
        <translation>Speicher eines Arbeitsprozesses, höchstens</translation>
    </message>
    <message>
        <source>A silent worker is ended after</source>
        <translation>Ein stummer Arbeitsprozess wird beendet nach</translation>
    </message>
    <message>
        <source>The first that works</source>
        <translation>Die erste, die geht</translation>
    </message>
    <message>
        <source>is taken</source>
        <translation>wird angenommen</translation>
    </message>
    <message>
        <source>is refused</source>
        <translation>wird abgelehnt</translation>
    </message>
    <message>
        <source>Terminals (for servers)</source>
        <translation>Terminals (für Server)</translation>
    </message>
    <message>
        <source>Screen saver</source>
        <translation>Bildschirmschoner</translation>
    </message>
    <message>
        <source>Program that watches the computer</source>
        <translation>Programm, das den Rechner beobachtet</translation>
    </message>
    <message>
        <source>Connect to other computers directly</source>
        <translation>Direkt mit anderen Rechnern verbinden</translation>
    </message>
    <message>
        <source>Address for direct connections</source>
        <translation>Adresse für direkte Verbindungen</translation>
    </message>
    <message>
        <source>Address for other machines</source>
        <translation>Adresse für andere Rechner</translation>
    </message>
    <message>
        <source>Work on jobs that is kept ahead</source>
        <translation>Vorrat an Arbeit für Aufträge</translation>
    </message>
    <message>
        <source>min</source>
        <translation>min</translation>
    </message>
    <message>
        <source>Work on jobs is stored every</source>
        <translation>Arbeit an Aufträgen wird gesichert alle</translation>
    </message>
</context>
<context>
    <name>shoal::ui::About</name>
    <message>
        <source>Shoal</source>
        <translation>Shoal</translation>
    </message>
    <message>
        <source>Lends this computer to large language models, when you do not need it.</source>
        <translation>Verleiht diesen Rechner an große Sprachmodelle, wenn Sie ihn nicht brauchen.</translation>
    </message>
    <message>
        <source>This window</source>
        <translation>Dieses Fenster</translation>
    </message>
    <message>
        <source>As the desktop</source>
        <translation>Wie die Arbeitsfläche</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>Colours</source>
        <translation>Farben</translation>
    </message>
    <message>
        <source>Start Shoal when I log in</source>
        <translation>Shoal starten, wenn ich mich anmelde</translation>
    </message>
    <message>
        <source>Tell me by notifications when I am needed</source>
        <translation>Mich benachrichtigen, wenn ich gebraucht werde</translation>
    </message>
    <message>
        <source>&amp;Colours</source>
        <translation>&amp;Farben</translation>
    </message>
    <message>
        <source>Show the first steps again</source>
        <translation>Die ersten Schritte noch einmal zeigen</translation>
    </message>
    <message>
        <source>Quit Shoal</source>
        <translation>Shoal beenden</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>This program uses Qt Charts and is free software under the GNU General Public License, version 3. It comes without any warranty. The background program and all others of Shoal have a licence of their own, in the file LICENSE.</source>
        <translation>Dieses Programm benutzt Qt Charts und ist freie Software unter der GNU General Public License, Version 3. Es kommt ohne jede Gewährleistung. Das Hintergrundprogramm und alle anderen Programme von Shoal haben eine eigene Lizenz, zu finden in der Datei LICENSE.</translation>
    </message>
    <message>
        <source>Version %1 of this window</source>
        <translation>Version %1 dieses Fensters</translation>
    </message>
    <message>
        <source>Version %1 of the background program, process %2</source>
        <translation>Version %1 des Hintergrundprogramms, Prozess %2</translation>
    </message>
    <message>
        <source>Its records are in %1</source>
        <translation>Seine Aufzeichnungen liegen in %1</translation>
    </message>
    <message>
        <source>The background program does not run.</source>
        <translation>Das Hintergrundprogramm läuft nicht.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::Banner</name>
    <message>
        <source>Close this note</source>
        <translation>Hinweis schließen</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>Problem</source>
        <translation>Problem</translation>
    </message>
</context>
<context>
    <name>shoal::ui::BundleDialog</name>
    <message>
        <source>Bundle for a bug report</source>
        <translation>Paket für einen Fehlerbericht</translation>
    </message>
    <message>
        <source>This is all that the file will hold. Keys, invites, addresses, and names of people and machines are taken out; look for yourself before you give it to anybody.</source>
        <translation>Dies ist alles, was die Datei enthalten wird. Schlüssel, Einladungen, Adressen und Namen von Menschen und Rechnern sind entfernt; sehen Sie selbst nach, bevor Sie sie jemandem geben.</translation>
    </message>
    <message>
        <source>Contents of the bundle</source>
        <translation>Inhalt des Pakets</translation>
    </message>
    <message>
        <source>Save the bundle</source>
        <translation>Das Paket speichern</translation>
    </message>
    <message>
        <source>%1 cannot be written: %2</source>
        <translation>%1 kann nicht geschrieben werden: %2</translation>
    </message>
</context>
<context>
    <name>shoal::ui::Chart</name>
    <message>
        <source>Table</source>
        <translation>Tabelle</translation>
    </message>
    <message>
        <source>Show the figures of this chart as a table</source>
        <translation>Die Zahlen dieses Diagramms als Tabelle zeigen</translation>
    </message>
    <message>
        <source>%1 as a table</source>
        <translation>%1 als Tabelle</translation>
    </message>
    <message>
        <source>%1
%2: %3</source>
        <translation>%1
%2: %3</translation>
    </message>
    <message>
        <source>%1: at most %2, %3</source>
        <translation>%1: höchstens %2, %3</translation>
    </message>
</context>
<context>
    <name>shoal::ui::ClientProcess</name>
    <message>
        <source>It does not answer.</source>
        <translation>Es antwortet nicht.</translation>
    </message>
    <message>
        <source>systemd could not start it: %1 Its log: journalctl --user -u %2</source>
        <translation>systemd konnte es nicht starten: %1 Sein Protokoll: journalctl --user -u %2</translation>
    </message>
    <message>
        <source>%1 is missing. Install Shoal again.</source>
        <translation>%1 fehlt. Installieren Sie Shoal neu.</translation>
    </message>
    <message>
        <source>%1 could not be started.</source>
        <translation>%1 ließ sich nicht starten.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::CoordinatorsPage</name>
    <message>
        <source>This computer works for nobody yet.</source>
        <translation>Dieser Rechner arbeitet noch für niemanden.</translation>
    </message>
    <message>
        <source>Paste the address that a coordinator&apos;s administrator gave you. Nothing is joined before you have seen what it asks.</source>
        <translation>Fügen Sie die Adresse ein, die Sie vom Verwalter eines Koordinators bekommen haben. Nichts geschieht, bevor Sie gesehen haben, was er verlangt.</translation>
    </message>
    <message>
        <source>Joined</source>
        <translation>Beigetreten</translation>
    </message>
    <message>
        <source>Coordinators</source>
        <translation>Koordinatoren</translation>
    </message>
    <message>
        <source>This computer works for nobody yet. Join a coordinator below with the address that you were given.</source>
        <translation>Dieser Rechner arbeitet noch für niemanden. Treten Sie unten mit der Adresse, die Sie bekommen haben, einem Koordinator bei.</translation>
    </message>
    <message>
        <source>Your devices there, and why they get no work</source>
        <translation>Ihre Geräte dort, und warum sie keine Arbeit bekommen</translation>
    </message>
    <message>
        <source>It has not said anything about your devices yet.</source>
        <translation>Er hat noch nichts über Ihre Geräte gesagt.</translation>
    </message>
    <message>
        <source>&amp;Leave…</source>
        <translation>&amp;Verlassen…</translation>
    </message>
    <message>
        <source>What may be computed here</source>
        <translation>Was hier gerechnet werden darf</translation>
    </message>
    <message>
        <source>Each kind of work is yours to allow or to deny. Work that you deny is given back.</source>
        <translation>Über jede Art Arbeit entscheiden Sie. Arbeit, die Sie ablehnen, wird zurückgegeben.</translation>
    </message>
    <message>
        <source>Join a coordinator</source>
        <translation>Einem Koordinator beitreten</translation>
    </message>
    <message>
        <source>Address of a coordinator</source>
        <translation>Adresse eines Koordinators</translation>
    </message>
    <message>
        <source>See what it &amp;asks</source>
        <translation>&amp;Sehen, was er verlangt</translation>
    </message>
    <message>
        <source>Leave %1</source>
        <translation>%1 verlassen</translation>
    </message>
    <message>
        <source>Connected since %1.</source>
        <translation>Verbunden seit %1.</translation>
    </message>
    <message>
        <source>This computer belongs to %1.</source>
        <translation>Dieser Rechner gehört zu: %1.</translation>
    </message>
    <message>
        <source>account %1</source>
        <translation>Konto %1</translation>
    </message>
    <message>
        <source>team %1</source>
        <translation>Team %1</translation>
    </message>
    <message>
        <source>group %1</source>
        <translation>Gruppe %1</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
    <message>
        <source>(next in %1)</source>
        <translation>(nächster Versuch in %1)</translation>
    </message>
    <message>
        <source>Asking…</source>
        <translation>Fragt…</translation>
    </message>
    <message>
        <source>It has no work now, and does not say what may come.</source>
        <translation>Er hat jetzt keine Arbeit und sagt nicht, was kommen kann.</translation>
    </message>
    <message>
        <source>&amp;Join</source>
        <translation>&amp;Beitreten</translation>
    </message>
    <message>
        <source>Not this one</source>
        <translation>Diesen nicht</translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation>Beitreten…</translation>
    </message>
    <message>
        <source>Leave</source>
        <translation>Verlassen</translation>
    </message>
    <message>
        <source>Leave %1? Its stages are given back, and nothing more comes from there. What you earned stays in its ledger, and the receipts stay here.</source>
        <translation>%1 verlassen? Seine Abschnitte werden zurückgegeben, und von dort kommt nichts mehr. Was Sie verdient haben, bleibt in seinem Hauptbuch, und die Quittungen bleiben hier.</translation>
    </message>
    <message>
        <source>&amp;Leave</source>
        <translation>&amp;Verlassen</translation>
    </message>
    <message>
        <source>This is the work that may come. Deny what you do not want; you can change it at any time.</source>
        <translation>Diese Arbeit kann kommen. Lehnen Sie ab, was Sie nicht wollen; ändern können Sie es jederzeit.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::DataTable</name>
    <message>
        <source>&amp;Copy</source>
        <translation>&amp;Kopieren</translation>
    </message>
    <message>
        <source>Select &amp;all</source>
        <translation>&amp;Alles auswählen</translation>
    </message>
    <message>
        <source>&amp;Save as CSV…</source>
        <translation>Als CSV &amp;speichern…</translation>
    </message>
    <message>
        <source>C&amp;olumns</source>
        <translation>S&amp;palten</translation>
    </message>
    <message>
        <source>Filter</source>
        <translation>Filter</translation>
    </message>
    <message>
        <source>Filter of %1</source>
        <translation>Filter für %1</translation>
    </message>
    <message>
        <source>Show only rows that contain this text (Ctrl+F)</source>
        <translation>Nur Zeilen zeigen, die diesen Text enthalten (Strg+F)</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the selected rows (Ctrl+C)</source>
        <translation>Die gewählten Zeilen kopieren (Strg+C)</translation>
    </message>
    <message>
        <source>Copy the selected rows of %1</source>
        <translation>Die gewählten Zeilen von %1 kopieren</translation>
    </message>
    <message>
        <source>Save CSV…</source>
        <translation>CSV speichern…</translation>
    </message>
    <message>
        <source>Save the rows shown as a file for spreadsheets</source>
        <translation>Die gezeigten Zeilen als Datei für Tabellenprogramme speichern</translation>
    </message>
    <message>
        <source>Save %1 as CSV</source>
        <translation>%1 als CSV speichern</translation>
    </message>
    <message>
        <source>Columns</source>
        <translation>Spalten</translation>
    </message>
    <message>
        <source>Choose the columns to show</source>
        <translation>Wählen, welche Spalten gezeigt werden</translation>
    </message>
    <message>
        <source>Columns of %1</source>
        <translation>Spalten von %1</translation>
    </message>
    <message>
        <source>Save as CSV</source>
        <translation>Als CSV speichern</translation>
    </message>
    <message>
        <source>Comma-separated values (*.csv)</source>
        <translation>Durch Komma getrennte Werte (*.csv)</translation>
    </message>
    <message>
        <source>%1 cannot be written: %2</source>
        <translation>%1 kann nicht geschrieben werden: %2</translation>
    </message>
    <message>
        <source>No row fits the filter.</source>
        <translation>Keine Zeile passt zum Filter.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::DeviceCard</name>
    <message>
        <source>Not lent.</source>
        <translation>Nicht verliehen.</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>Leistung</translation>
    </message>
    <message>
        <source>Power, estimated</source>
        <translation>Leistung, geschätzt</translation>
    </message>
    <message>
        <source>Busy, last minute</source>
        <translation>Ausgelastet, letzte Minute</translation>
    </message>
    <message>
        <source>Credit today</source>
        <translation>Guthaben heute</translation>
    </message>
</context>
<context>
    <name>shoal::ui::DevicesPage</name>
    <message>
        <source>No device is known yet</source>
        <translation>Noch ist kein Gerät bekannt</translation>
    </message>
    <message>
        <source>Shoal looks for GPUs and the CPU while it starts, and again every minute. If none appears, the log says why.</source>
        <translation>Shoal sucht beim Start nach Grafikkarten und Prozessor, und dann jede Minute wieder. Erscheint keines, sagt das Protokoll, warum.</translation>
    </message>
    <message>
        <source>Open the log</source>
        <translation>Protokoll öffnen</translation>
    </message>
    <message>
        <source>Devices of this computer</source>
        <translation>Geräte dieses Rechners</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>Geräte</translation>
    </message>
    <message>
        <source>&amp;Lend this device</source>
        <translation>Dieses Gerät &amp;verleihen</translation>
    </message>
    <message>
        <source>What it can do</source>
        <translation>Was es kann</translation>
    </message>
    <message>
        <source>&amp;Measure again</source>
        <translation>Neu &amp;messen</translation>
    </message>
    <message>
        <source>Progress of the measurement</source>
        <translation>Fortschritt der Messung</translation>
    </message>
    <message>
        <source>Lend %1</source>
        <translation>%1 verleihen</translation>
    </message>
    <message>
        <source>This device is not lent: it is left alone.</source>
        <translation>Dieses Gerät wird nicht verliehen: es bleibt in Ruhe.</translation>
    </message>
    <message>
        <source>Credit today</source>
        <translation>Guthaben heute</translation>
    </message>
    <message>
        <source>Confirmed by the coordinators</source>
        <translation>Von den Koordinatoren bestätigt</translation>
    </message>
    <message>
        <source>Tokens today</source>
        <translation>Token heute</translation>
    </message>
    <message>
        <source>Busy</source>
        <translation>Ausgelastet</translation>
    </message>
    <message>
        <source>Part of the last minute</source>
        <translation>Teil der letzten Minute</translation>
    </message>
    <message>
        <source>Stages</source>
        <translation>Abschnitte</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>Leistung</translation>
    </message>
    <message>
        <source>%1, measured</source>
        <translation>%1, gemessen</translation>
    </message>
    <message>
        <source>%1, estimated</source>
        <translation>%1, geschätzt</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>%1, of which Shoal uses %2</source>
        <translation>%1, davon braucht Shoal %2</translation>
    </message>
    <message>
        <source>Pace</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>as fast as it can</source>
        <translation>so schnell es geht</translation>
    </message>
    <message>
        <source>at most %1 of the time. %2</source>
        <translation>höchstens %1 der Zeit. %2</translation>
    </message>
    <message>
        <source>Driver</source>
        <translation>Treiber</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>%1 on the CPU</source>
        <translation>%1 auf dem Prozessor</translation>
    </message>
    <message>
        <source>Worker</source>
        <translation>Arbeitsprozess</translation>
    </message>
    <message>
        <source>not running</source>
        <translation>läuft nicht</translation>
    </message>
    <message>
        <source>process %1</source>
        <translation>Prozess %1</translation>
    </message>
    <message>
        <source>Restarts</source>
        <translation>Neustarts</translation>
    </message>
    <message>
        <source>How often its worker had to be started anew</source>
        <translation>Wie oft sein Arbeitsprozess neu gestartet werden musste</translation>
    </message>
    <message>
        <source>Tokens, one by one</source>
        <translation>Token, einzeln</translation>
    </message>
    <message>
        <source>Through one block of fixed shape</source>
        <translation>Durch einen Block fester Form</translation>
    </message>
    <message>
        <source>Tokens, many at once</source>
        <translation>Token, viele zugleich</translation>
    </message>
    <message>
        <source>Arithmetic</source>
        <translation>Rechenleistung</translation>
    </message>
    <message>
        <source>Reading weights</source>
        <translation>Gewichte lesen</translation>
    </message>
    <message>
        <source>Copying</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Measured</source>
        <translation>Gemessen</translation>
    </message>
    <message>
        <source>not yet</source>
        <translation>noch nicht</translation>
    </message>
    <message>
        <source>Not tested yet whether its results are exact.</source>
        <translation>Noch nicht geprüft, ob die Ergebnisse exakt sind.</translation>
    </message>
    <message>
        <source>✓ Exact: all %1 test results have the same bits as the reference.</source>
        <translation>✓ Exakt: alle %1 Testergebnisse haben dieselben Bits wie die Vorlage.</translation>
    </message>
    <message>
        <source>✗ Not exact: %1 of %2 test results differ from the reference. First: %3</source>
        <translation>✗ Nicht exakt: %1 von %2 Testergebnissen weichen von der Vorlage ab. Zuerst: %3</translation>
    </message>
    <message>
        <source>Measuring for %1; it takes less than a minute.</source>
        <translation>Misst seit %1; es dauert weniger als eine Minute.</translation>
    </message>
    <message>
        <source>Waiting until the device has no stage; so far %1.</source>
        <translation>Wartet, bis das Gerät keinen Abschnitt hat; bisher %1.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::EmptyState</name>
    <message>
        <source>Shoal does not run</source>
        <translation>Shoal läuft nicht</translation>
    </message>
    <message>
        <source>This window shows what the background program does. It appears here as soon as that program runs.</source>
        <translation>Dieses Fenster zeigt, was das Hintergrundprogramm tut. Es erscheint hier, sobald dieses läuft.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::Guide</name>
    <message>
        <source>Waiting for an answer</source>
        <translation>Wartet auf Antwort</translation>
    </message>
    <message>
        <source>&amp;Not now</source>
        <translation>&amp;Nicht jetzt</translation>
    </message>
    <message>
        <source>Look around first. You can join under Coordinators at any time.</source>
        <translation>Sehen Sie sich erst um. Beitreten können Sie jederzeit unter Koordinatoren.</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>&amp;Zurück</translation>
    </message>
    <message>
        <source>A coordinator hands out the work. Whoever runs it gave you a URL that begins with shoal:// and holds your invitation. Put it in here.</source>
        <translation>Ein Koordinator verteilt die Arbeit. Wer ihn betreibt, gab Ihnen eine URL, die mit shoal:// beginnt und Ihre Einladung enthält. Tragen Sie sie hier ein.</translation>
    </message>
    <message>
        <source>The coordinator&apos;s URL</source>
        <translation>Die URL des Koordinators</translation>
    </message>
    <message>
        <source>The URL also holds the coordinator&apos;s key, so nobody can put himself in between. Nothing is sent before you have seen what the coordinator asks.</source>
        <translation>Die URL enthält auch den Schlüssel des Koordinators, so dass sich niemand dazwischenschieben kann. Nichts wird gesendet, bevor Sie gesehen haben, was der Koordinator verlangt.</translation>
    </message>
    <message>
        <source>Shoal now checks that each device computes the very same bits as all others, and how fast it is. This takes less than a minute for each.</source>
        <translation>Shoal prüft nun, ob jedes Gerät genau dieselben Bits errechnet wie alle anderen, und wie schnell es ist. Das dauert je Gerät weniger als eine Minute.</translation>
    </message>
    <message>
        <source>Progress of the measurement</source>
        <translation>Fortschritt der Messung</translation>
    </message>
    <message>
        <source>Which devices do you lend? Shoal stops at once when you come back, so that you never wait for your own computer.</source>
        <translation>Welche Geräte verleihen Sie? Shoal hört sofort auf, wenn Sie zurückkommen, damit Sie nie auf Ihren eigenen Rechner warten.</translation>
    </message>
    <message>
        <source>Start Shoal when I log in</source>
        <translation>Shoal starten, wenn ich mich anmelde</translation>
    </message>
    <message>
        <source>Step %1 of 5</source>
        <translation>Schritt %1 von 5</translation>
    </message>
    <message>
        <source>&amp;Later</source>
        <translation>&amp;Später</translation>
    </message>
    <message>
        <source>Join a coordinator</source>
        <translation>Einem Koordinator beitreten</translation>
    </message>
    <message>
        <source>Show what it asks</source>
        <translation>Zeigen, was er verlangt</translation>
    </message>
    <message>
        <source>&amp;Join</source>
        <translation>&amp;Beitreten</translation>
    </message>
    <message>
        <source>Measure this computer</source>
        <translation>Diesen Rechner messen</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>Weiter</translation>
    </message>
    <message>
        <source>Choose devices</source>
        <translation>Geräte wählen</translation>
    </message>
    <message>
        <source>That is all</source>
        <translation>Das ist alles</translation>
    </message>
    <message>
        <source>&amp;Finish</source>
        <translation>&amp;Fertig</translation>
    </message>
    <message>
        <source>Shoal works when your rules allow it: at first while nobody uses this computer. The Overview says at any time whether it works and why. Pause it there, or in the tray.</source>
        <translation>Shoal arbeitet, wenn Ihre Regeln es erlauben: zunächst, solange niemand diesen Rechner benutzt. Die Übersicht sagt jederzeit, ob gearbeitet wird und warum. Anhalten können Sie dort oder am Symbol in der Leiste.</translation>
    </message>
    <message>
        <source>Put in the URL that you were given.</source>
        <translation>Tragen Sie die URL ein, die Sie bekommen haben.</translation>
    </message>
    <message>
        <source>Asking the coordinator…</source>
        <translation>Der Koordinator wird gefragt…</translation>
    </message>
    <message>
        <source>What %1 asks</source>
        <translation>Was %1 verlangt</translation>
    </message>
    <message>
        <source>It has no work now. You can join and judge each kind of work when it comes, under Coordinators.</source>
        <translation>Er hat jetzt keine Arbeit. Sie können beitreten und über jede Art Arbeit entscheiden, wenn sie kommt, unter Koordinatoren.</translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation>Beitreten…</translation>
    </message>
    <message>
        <source>All devices that you lend are measured.</source>
        <translation>Alle Geräte, die Sie verleihen, sind gemessen.</translation>
    </message>
    <message>
        <source>Measuring %1 (%2 of %3)…</source>
        <translation>%1 wird gemessen (%2 von %3)…</translation>
    </message>
    <message>
        <source>%1 could not be measured: %2</source>
        <translation>%1 konnte nicht gemessen werden: %2</translation>
    </message>
    <message>
        <source>Not measured yet. %1 of memory.</source>
        <translation>Noch nicht gemessen. %1 Speicher.</translation>
    </message>
    <message>
        <source>It computes other bits than the rest, so it gets no work.</source>
        <translation>Es errechnet andere Bits als die übrigen und bekommt darum keine Arbeit.</translation>
    </message>
    <message>
        <source>%1 tokens a second for one block of a model; exact. %2 of memory.</source>
        <translation>%1 Token in der Sekunde für einen Block eines Modells; exakt. %2 Speicher.</translation>
    </message>
    <message>
        <source>Clear the URL</source>
        <translation>Die URL löschen</translation>
    </message>
    <message>
        <source>These kinds of work may come. Deny what you do not want; you can change it later under Coordinators.</source>
        <translation>Diese Arten Arbeit können kommen. Lehnen Sie ab, was Sie nicht wollen; ändern können Sie es später unter Koordinatoren.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::IdleCard</name>
    <message>
        <source>Who tells that you are away</source>
        <translation>Wer sagt, dass Sie fort sind</translation>
    </message>
    <message>
        <source>Sources of idle time</source>
        <translation>Quellen für Zeit ohne Eingabe</translation>
    </message>
    <message>
        <source>No source has been tried yet. Press Test.</source>
        <translation>Noch keine Quelle wurde probiert. Drücken Sie Testen.</translation>
    </message>
    <message>
        <source>&amp;Test</source>
        <translation>&amp;Testen</translation>
    </message>
    <message>
        <source>Test the sources of idle time</source>
        <translation>Die Quellen für Zeit ohne Eingabe testen</translation>
    </message>
    <message>
        <source>%1 Leave keyboard and mouse alone for some seconds and test again: the time has to grow.</source>
        <translation>%1 Lassen Sie Tastatur und Maus einige Sekunden in Ruhe und testen Sie wieder: die Zeit muss wachsen.</translation>
    </message>
    <message>
        <source>Nobody tells. Until somebody does, Shoal takes the computer as in use.</source>
        <translation>Niemand sagt es. Bis es jemand tut, hält Shoal den Rechner für benutzt.</translation>
    </message>
    <message>
        <source>Nothing on this computer tells whether you are here, so it counts as in use. If it is a server, choose the mode “Always”.</source>
        <translation>Nichts auf diesem Rechner verrät, ob Sie da sind, darum gilt er als benutzt. Ist er ein Server, wählen Sie „Immer“.</translation>
    </message>
    <message>
        <source>%1 (told by %2)</source>
        <translation>%1 (sagt %2)</translation>
    </message>
    <message>
        <source>Not known: %1</source>
        <translation>Nicht bekannt: %1</translation>
    </message>
</context>
<context>
    <name>shoal::ui::LeaveByCard</name>
    <message>
        <source>I need it back by</source>
        <translation>Ich brauche ihn zurück um</translation>
    </message>
    <message>
        <source>When you need the computer back</source>
        <translation>Wann Sie den Rechner zurück brauchen</translation>
    </message>
    <message>
        <source>&amp;Set</source>
        <translation>&amp;Setzen</translation>
    </message>
    <message>
        <source>Set when you need the computer back</source>
        <translation>Setzen, wann Sie den Rechner zurück brauchen</translation>
    </message>
    <message>
        <source>No such time</source>
        <translation>Keine solche Zeit</translation>
    </message>
    <message>
        <source>Only work that ends before this time is taken, and then none.</source>
        <translation>Nur Arbeit, die vor dieser Zeit endet, wird angenommen, und danach keine.</translation>
    </message>
    <message>
        <source>Only work that ends before %1 is taken, and then none.</source>
        <translation>Nur Arbeit, die vor %1 endet, wird angenommen, und danach keine.</translation>
    </message>
    <message>
        <source>That time is over. Choose a later one.</source>
        <translation>Diese Zeit ist vorbei. Wählen Sie eine spätere.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::LogPage</name>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>Nothing has been logged yet.</source>
        <translation>Noch wurde nichts protokolliert.</translation>
    </message>
    <message>
        <source>Least level</source>
        <translation>Kleinste Stufe</translation>
    </message>
    <message>
        <source>Everything</source>
        <translation>Alles</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>Warnungen und Fehler</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>Module</source>
        <translation>Teil</translation>
    </message>
    <message>
        <source>All modules</source>
        <translation>Alle Teile</translation>
    </message>
    <message>
        <source>&amp;Follow</source>
        <translation>&amp;Folgen</translation>
    </message>
    <message>
        <source>Stay at the newest line</source>
        <translation>Bei der neuesten Zeile bleiben</translation>
    </message>
    <message>
        <source>&amp;Bundle for a bug report…</source>
        <translation>&amp;Paket für einen Fehlerbericht…</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Suchen</translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n line(s)</source>
        <translation>
            <numerusform>%1 von %n Zeile</numerusform>
            <numerusform>%1 von %n Zeilen</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>shoal::ui::ModesCard</name>
    <message>
        <source>Modes</source>
        <translation>Betriebsarten</translation>
    </message>
    <message>
        <source>“Always” works whatever the rules say of you, of hours, load and battery; limits of temperature, memory and disk, and caps, hold all the same.</source>
        <translation>„Immer“ arbeitet, was auch die Regeln über Sie, über Zeiten, Last und Akku sagen; Grenzen für Temperatur, Speicher und Platte sowie Höchstmengen gelten trotzdem.</translation>
    </message>
    <message>
        <source>until I change it</source>
        <translation>bis ich es ändere</translation>
    </message>
    <message numerus="yes">
        <source>for %n minute(s)</source>
        <translation>
            <numerusform>für %n Minute</numerusform>
            <numerusform>für %n Minuten</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>for %n hour(s)</source>
        <translation>
            <numerusform>für %n Stunde</numerusform>
            <numerusform>für %n Stunden</numerusform>
        </translation>
    </message>
    <message>
        <source>Mode of %1</source>
        <translation>Betriebsart von %1</translation>
    </message>
    <message>
        <source>For how long: %1</source>
        <translation>Wie lange: %1</translation>
    </message>
    <message>
        <source>until %1</source>
        <translation>bis %1</translation>
    </message>
</context>
<context>
    <name>shoal::ui::Notices</name>
    <message>
        <source>Shoal needs your attention</source>
        <translation>Shoal braucht Sie</translation>
    </message>
    <message>
        <source>Your first credit</source>
        <translation>Ihr erstes Guthaben</translation>
    </message>
    <message>
        <source>Work of this computer was accepted for the first time. Thank you.</source>
        <translation>Zum ersten Mal wurde Arbeit dieses Rechners angenommen. Vielen Dank.</translation>
    </message>
    <message>
        <source>Your pause is over</source>
        <translation>Ihre Pause ist vorbei</translation>
    </message>
    <message>
        <source>Shoal goes by your rules again.</source>
        <translation>Shoal richtet sich wieder nach Ihren Regeln.</translation>
    </message>
    <message>
        <source>Open Shoal</source>
        <translation>Shoal öffnen</translation>
    </message>
</context>
<context>
    <name>shoal::ui::OfferCard</name>
    <message>
        <source>Its publisher does not say what it is for.</source>
        <translation>Wer es veröffentlicht hat, sagt nicht, wozu es dient.</translation>
    </message>
    <message>
        <source>Up to %1 to fetch · %2 credit for 1,000 tokens · %3</source>
        <translation>Bis zu %1 zu holen · %2 Guthaben für 1.000 Token · %3</translation>
    </message>
    <message>
        <source>Allow</source>
        <translation>Erlauben</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>Ablehnen</translation>
    </message>
    <message>
        <source>Allow %1</source>
        <translation>%1 erlauben</translation>
    </message>
    <message>
        <source>Deny %1</source>
        <translation>%1 ablehnen</translation>
    </message>
    <message>
        <source>%1 while it works</source>
        <translation>%1, während es arbeitet</translation>
    </message>
    <message>
        <source>about %1 while it works</source>
        <translation>etwa %1, während es arbeitet</translation>
    </message>
</context>
<context>
    <name>shoal::ui::OverviewPage</name>
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>Show devices</source>
        <translation>Geräte zeigen</translation>
    </message>
    <message>
        <source>%1 refuses this computer: %2</source>
        <translation>%1 weist diesen Rechner ab: %2</translation>
    </message>
    <message>
        <source>Show coordinators</source>
        <translation>Koordinatoren zeigen</translation>
    </message>
    <message>
        <source>This computer has not joined a coordinator yet, so no work can come.</source>
        <translation>Dieser Rechner ist noch keinem Koordinator beigetreten, darum kann keine Arbeit kommen.</translation>
    </message>
    <message>
        <source>Join one</source>
        <translation>Einem beitreten</translation>
    </message>
    <message>
        <source>Credit</source>
        <translation>Guthaben</translation>
    </message>
    <message>
        <source>%1 ever</source>
        <translation>%1 insgesamt</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Computing</source>
        <translation>Gerechnet</translation>
    </message>
    <message>
        <source>of %1 allowed</source>
        <translation>von %1 erlaubten</translation>
    </message>
    <message>
        <source>Energy</source>
        <translation>Energie</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>Kosten</translation>
    </message>
    <message>
        <source>When you come back, this computer is yours within %1; its memory is free within %2. Both are measured each time.</source>
        <translation>Kommen Sie zurück, gehört dieser Rechner binnen %1 Ihnen; sein Speicher ist binnen %2 frei. Beides wird jedes Mal gemessen.</translation>
    </message>
    <message>
        <source>When you came back, this computer was yours after %1 (99 of 100 times within %2), its memory after %3 (%4).</source>
        <translation>Kamen Sie zurück, gehörte dieser Rechner nach %1 Ihnen (99 von 100 Malen binnen %2), sein Speicher nach %3 (%4).</translation>
    </message>
    <message numerus="yes">
        <source>Never later than you allow, %n time(s).</source>
        <translation>
            <numerusform>Nie später als Sie erlauben, bei %n Mal.</numerusform>
            <numerusform>Nie später als Sie erlauben, bei %n Malen.</numerusform>
        </translation>
    </message>
    <message>
        <source>Later than you allow: %1 of %2 times.</source>
        <translation>Später als Sie erlauben: %1 von %2 Malen.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::PairingCard</name>
    <message>
        <source>No other machine may control this one.</source>
        <translation>Kein anderer Rechner darf diesen steuern.</translation>
    </message>
    <message>
        <source>&amp;Remove the selected one</source>
        <translation>Das gewählte &amp;entfernen</translation>
    </message>
    <message>
        <source>Other machines</source>
        <translation>Andere Rechner</translation>
    </message>
    <message>
        <source>&amp;Pair another machine…</source>
        <translation>Einen weiteren Rechner &amp;koppeln…</translation>
    </message>
    <message>
        <source>The command line of paired machines can steer this one over the network now.</source>
        <translation>Die Befehlszeile gekoppelter Rechner kann diesen jetzt über das Netz steuern.</translation>
    </message>
    <message>
        <source>Off: give an address above to let paired machines connect.</source>
        <translation>Aus: geben Sie oben eine Adresse an, damit gekoppelte Rechner sich verbinden können.</translation>
    </message>
    <message>
        <source>On the other machine, run this before %1. The address in it works once:
%2</source>
        <translation>Führen Sie dies vor %1 auf dem anderen Rechner aus. Die Adresse darin gilt einmal:
%2</translation>
    </message>
</context>
<context>
    <name>shoal::ui::ResourceCard</name>
    <message>
        <source>By rules</source>
        <translation>Nach Regeln</translation>
    </message>
    <message>
        <source>%1: by rules</source>
        <translation>%1: nach Regeln</translation>
    </message>
    <message>
        <source>Works when your rules allow it</source>
        <translation>Arbeitet, wenn Ihre Regeln es erlauben</translation>
    </message>
    <message>
        <source>Always</source>
        <translation>Immer</translation>
    </message>
    <message>
        <source>%1: always</source>
        <translation>%1: immer</translation>
    </message>
    <message>
        <source>Works even while you use this computer; the limits of temperature, memory and disk still hold</source>
        <translation>Arbeitet auch, während Sie diesen Rechner benutzen; die Grenzen für Temperatur, Speicher und Platte gelten weiter</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Angehalten</translation>
    </message>
    <message>
        <source>%1: paused</source>
        <translation>%1: angehalten</translation>
    </message>
    <message>
        <source>Does not work until the time that you choose</source>
        <translation>Arbeitet nicht bis zu der Zeit, die Sie wählen</translation>
    </message>
    <message>
        <source>By rules again in %1</source>
        <translation>Wieder nach Regeln in %1</translation>
    </message>
</context>
<context>
    <name>shoal::ui::RulesPage</name>
    <message>
        <source>Groups of rules</source>
        <translation>Gruppen von Regeln</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>Jetzt</translation>
    </message>
    <message>
        <source>Last week</source>
        <translation>Letzte Woche</translation>
    </message>
</context>
<context>
    <name>shoal::ui::SensorsCard</name>
    <message>
        <source>What Shoal knows of this computer</source>
        <translation>Was Shoal von diesem Rechner weiß</translation>
    </message>
    <message>
        <source>Sensors</source>
        <translation>Fühler</translation>
    </message>
    <message>
        <source>No sensor has answered yet.</source>
        <translation>Noch hat kein Fühler geantwortet.</translation>
    </message>
    <message>
        <source>&amp;Ask the selected one again</source>
        <translation>Den gewählten noch einmal &amp;fragen</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1: %2</translation>
    </message>
</context>
<context>
    <name>shoal::ui::SettingEditor</name>
    <message>
        <source>Another one</source>
        <translation>Noch einer</translation>
    </message>
    <message>
        <source>Add to: %1</source>
        <translation>Hinzufügen zu: %1</translation>
    </message>
    <message>
        <source>Add</source>
        <translation>Hinzufügen</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Remove from: %1</source>
        <translation>Entfernen aus: %1</translation>
    </message>
    <message>
        <source>Every hour</source>
        <translation>Jede Stunde</translation>
    </message>
    <message>
        <source>%1: every hour</source>
        <translation>%1: jede Stunde</translation>
    </message>
    <message>
        <source>Nights and weekends</source>
        <translation>Nächte und Wochenenden</translation>
    </message>
    <message>
        <source>%1: nights and weekends</source>
        <translation>%1: Nächte und Wochenenden</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>Leeren</translation>
    </message>
    <message>
        <source>%1: clear</source>
        <translation>%1: leeren</translation>
    </message>
    <message>
        <source>%1 of 168 hours</source>
        <translation>%1 von 168 Stunden</translation>
    </message>
    <message>
        <source>Never: no hour is chosen.</source>
        <translation>Nie: keine Stunde ist gewählt.</translation>
    </message>
    <message>
        <source>These hours cannot be shown as a grid.</source>
        <translation>Diese Zeiten lassen sich nicht als Gitter zeigen.</translation>
    </message>
    <message>
        <source>Some begin or end within a half hour; a change here rounds them.</source>
        <translation>Einige beginnen oder enden innerhalb einer halben Stunde; eine Änderung hier rundet sie.</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>Zurücksetzen</translation>
    </message>
    <message>
        <source>Back to the default</source>
        <translation>Zurück zur Voreinstellung</translation>
    </message>
    <message>
        <source>%1: back to the default</source>
        <translation>%1: zurück zur Voreinstellung</translation>
    </message>
    <message>
        <source>Acts when Shoal starts again.</source>
        <translation>Wirkt, wenn Shoal neu startet.</translation>
    </message>
    <message>
        <source>default</source>
        <translation>Voreinstellung</translation>
    </message>
</context>
<context>
    <name>shoal::ui::Shell</name>
    <message>
        <source>That did not work</source>
        <translation>Das ging nicht</translation>
    </message>
    <message>
        <source>Shoal goes on</source>
        <translation>Shoal läuft weiter</translation>
    </message>
    <message>
        <source>You find it as a small icon in the panel.</source>
        <translation>Sie finden es als kleines Symbol in der Leiste.</translation>
    </message>
    <message>
        <source>This desktop has no place for tray icons now, so Shoal shows this window instead. When you close it, work goes on in the background; start Shoal again to see it. On GNOME, the extension AppIndicator brings the icon back.</source>
        <translation>Diese Arbeitsfläche hat zurzeit keinen Platz für Symbole in der Leiste, darum zeigt Shoal stattdessen dieses Fenster. Schließen Sie es, geht die Arbeit im Hintergrund weiter; starten Sie Shoal wieder, um es zu sehen. Unter GNOME bringt die Erweiterung AppIndicator das Symbol zurück.</translation>
    </message>
    <message>
        <source>Quit Shoal</source>
        <translation>Shoal beenden</translation>
    </message>
    <message>
        <source>Shall this computer go on lending when Shoal&apos;s window and icon are gone?</source>
        <translation>Soll dieser Rechner weiter verliehen werden, wenn Fenster und Symbol von Shoal fort sind?</translation>
    </message>
    <message>
        <source>&amp;Go on</source>
        <translation>&amp;Weiter verleihen</translation>
    </message>
    <message>
        <source>&amp;Stop lending</source>
        <translation>&amp;Aufhören</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>A&amp;bbrechen</translation>
    </message>
    <message>
        <source>Do not ask again</source>
        <translation>Nicht mehr fragen</translation>
    </message>
</context>
<context>
    <name>shoal::ui::StateCard</name>
    <message>
        <source>Contribute</source>
        <translation>Beitragen</translation>
    </message>
    <message>
        <source>Lends this computer, or pauses everything until you resume</source>
        <translation>Verleiht diesen Rechner, oder hält alles an, bis Sie fortsetzen</translation>
    </message>
    <message>
        <source>Switch off to pause everything until you resume</source>
        <translation>Schalten Sie aus, um alles anzuhalten, bis Sie fortsetzen</translation>
    </message>
    <message>
        <source>&amp;Pause for</source>
        <translation>&amp;Anhalten für</translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation>&amp;Fortsetzen</translation>
    </message>
    <message>
        <source>Change this rule</source>
        <translation>Diese Regel ändern</translation>
    </message>
    <message>
        <source>I need this computer at</source>
        <translation>Ich brauche diesen Rechner um</translation>
    </message>
    <message>
        <source>The time at which you need this computer</source>
        <translation>Die Zeit, zu der Sie diesen Rechner brauchen</translation>
    </message>
    <message>
        <source>Set</source>
        <translation>Setzen</translation>
    </message>
    <message>
        <source>Set the time at which you need this computer</source>
        <translation>Die Zeit setzen, zu der Sie diesen Rechner brauchen</translation>
    </message>
    <message>
        <source>Until then only work that ends in time is taken, and then none until you say so</source>
        <translation>Bis dahin wird nur Arbeit angenommen, die rechtzeitig endet, und danach keine, bis Sie es sagen</translation>
    </message>
    <message>
        <source>No longer</source>
        <translation>Nicht mehr</translation>
    </message>
    <message>
        <source>You no longer need this computer at a certain time</source>
        <translation>Sie brauchen diesen Rechner nicht mehr zu einer bestimmten Zeit</translation>
    </message>
    <message>
        <source>You need this computer at %1.</source>
        <translation>Sie brauchen diesen Rechner um %1.</translation>
    </message>
    <message>
        <source>Changes at %1, in %2.</source>
        <translation>Ändert sich um %1, in %2.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::StatisticsPage</name>
    <message>
        <source>Nothing to count yet</source>
        <translation>Noch nichts zu zählen</translation>
    </message>
    <message>
        <source>Credit, tokens, hours and energy are counted here from the first work on.</source>
        <translation>Guthaben, Token, Stunden und Energie werden hier von der ersten Arbeit an gezählt.</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>7 days</source>
        <translation>7 Tage</translation>
    </message>
    <message>
        <source>30 days</source>
        <translation>30 Tage</translation>
    </message>
    <message>
        <source>Ever</source>
        <translation>Insgesamt</translation>
    </message>
    <message>
        <source>Show: %1</source>
        <translation>Zeigen: %1</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>All devices</source>
        <translation>Alle Geräte</translation>
    </message>
    <message>
        <source>Credit</source>
        <translation>Guthaben</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Hours</source>
        <translation>Zeiten</translation>
    </message>
    <message>
        <source>Energy</source>
        <translation>Energie</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>Kosten</translation>
    </message>
    <message>
        <source>Highest temperature</source>
        <translation>Höchste Temperatur</translation>
    </message>
    <message>
        <source>Nothing in this time.</source>
        <translation>Nichts in dieser Zeit.</translation>
    </message>
    <message>
        <source>No device tells its temperature.</source>
        <translation>Kein Gerät verrät seine Temperatur.</translation>
    </message>
    <message>
        <source>By device</source>
        <translation>Nach Gerät</translation>
    </message>
    <message>
        <source>Statistics by device</source>
        <translation>Statistik nach Gerät</translation>
    </message>
    <message>
        <source>No device has worked in this time.</source>
        <translation>Kein Gerät hat in dieser Zeit gearbeitet.</translation>
    </message>
    <message>
        <source>Receipts</source>
        <translation>Quittungen</translation>
    </message>
    <message>
        <source>A coordinator signs what each piece of work was worth. Shoal keeps these receipts and can check every signature and the sum without asking anybody.</source>
        <translation>Ein Koordinator unterschreibt, was jede Arbeit wert war. Shoal hebt diese Quittungen auf und kann jede Unterschrift und die Summe prüfen, ohne jemanden zu fragen.</translation>
    </message>
    <message>
        <source>&amp;Verify my total</source>
        <translation>Meine Summe &amp;prüfen</translation>
    </message>
    <message>
        <source>Answers to the check of receipts</source>
        <translation>Antworten auf die Prüfung der Quittungen</translation>
    </message>
    <message>
        <source>No receipt yet: the first comes with the first work.</source>
        <translation>Noch keine Quittung: die erste kommt mit der ersten Arbeit.</translation>
    </message>
    <message>
        <source>Confirmed</source>
        <translation>Bestätigt</translation>
    </message>
    <message>
        <source>Pending</source>
        <translation>Offen</translation>
    </message>
    <message>
        <source>Rejected</source>
        <translation>Abgelehnt</translation>
    </message>
    <message>
        <source>Worked</source>
        <translation>Gearbeitet</translation>
    </message>
    <message>
        <source>Ready, without work</source>
        <translation>Bereit, ohne Arbeit</translation>
    </message>
    <message>
        <source>h</source>
        <translation>h</translation>
    </message>
    <message>
        <source>kWh</source>
        <translation>kWh</translation>
    </message>
    <message>
        <source>°C</source>
        <translation>°C</translation>
    </message>
    <message>
        <source>%1 pending, %2 rejected</source>
        <translation>%1 offen, %2 abgelehnt</translation>
    </message>
    <message>
        <source>through your stages</source>
        <translation>durch Ihre Abschnitte</translation>
    </message>
    <message>
        <source>of %1 that your rules allowed</source>
        <translation>von %1, die Ihre Regeln erlaubten</translation>
    </message>
    <message>
        <source>Duty</source>
        <translation>Auslastung</translation>
    </message>
    <message>
        <source>worked, of what was allowed</source>
        <translation>gearbeitet, vom Erlaubten</translation>
    </message>
    <message>
        <source>%1 credit for a kWh</source>
        <translation>%1 Guthaben je kWh</translation>
    </message>
    <message>
        <source>at your price</source>
        <translation>zu Ihrem Preis</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>%1 down, %2 up</source>
        <translation>%1 geholt, %2 gesendet</translation>
    </message>
    <message>
        <source>Hottest</source>
        <translation>Heißeste</translation>
    </message>
    <message>
        <source>Checking every signature…</source>
        <translation>Jede Unterschrift wird geprüft…</translation>
    </message>
    <message>
        <source>There is no receipt to check yet.</source>
        <translation>Noch ist keine Quittung zu prüfen.</translation>
    </message>
    <message>
        <source>✓ Your total is right.</source>
        <translation>✓ Ihre Summe stimmt.</translation>
    </message>
    <message>
        <source>✗ Not every total is right: see below.</source>
        <translation>✗ Nicht jede Summe stimmt: siehe unten.</translation>
    </message>
    <message>
        <source>The newest %1 receipts. All of them are verified, older ones too.</source>
        <translation>Die neuesten %1 Quittungen. Geprüft werden alle, auch ältere.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::TraceCard</name>
    <message>
        <source>The last week</source>
        <translation>Die letzte Woche</translation>
    </message>
    <message>
        <source>Timeline of the last week; arrow keys walk through it</source>
        <translation>Zeitleiste der letzten Woche; Pfeiltasten gehen hindurch</translation>
    </message>
    <message>
        <source>What happened, and why</source>
        <translation>Was geschah, und warum</translation>
    </message>
    <message>
        <source>Nothing is recorded yet.</source>
        <translation>Noch ist nichts aufgezeichnet.</translation>
    </message>
    <message>
        <source>Table</source>
        <translation>Tabelle</translation>
    </message>
    <message>
        <source>Show the last week as a table</source>
        <translation>Die letzte Woche als Tabelle zeigen</translation>
    </message>
    <message>
        <source>The last week as a table</source>
        <translation>Die letzte Woche als Tabelle</translation>
    </message>
    <message>
        <source>Point at a span, or walk with the arrow keys, to see what it was.</source>
        <translation>Zeigen Sie auf einen Abschnitt, oder gehen Sie mit den Pfeiltasten, um zu sehen, was war.</translation>
    </message>
    <message>
        <source>%1, %2 to %3 (%4): %5. %6</source>
        <translation>%1, %2 bis %3 (%4): %5. %6</translation>
    </message>
    <message>
        <source>now</source>
        <translation>jetzt</translation>
    </message>
</context>
<context>
    <name>shoal::ui::Tray</name>
    <message>
        <source>&amp;Contribute</source>
        <translation>&amp;Beitragen</translation>
    </message>
    <message>
        <source>&amp;Pause for</source>
        <translation>&amp;Anhalten für</translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation>&amp;Fortsetzen</translation>
    </message>
    <message>
        <source>&amp;Start Shoal&apos;s background program</source>
        <translation>Hintergrundprogramm von Shoal &amp;starten</translation>
    </message>
    <message>
        <source>&amp;Open Shoal</source>
        <translation>Shoal ö&amp;ffnen</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>B&amp;eenden</translation>
    </message>
    <message>
        <source>The background program hangs.</source>
        <translation>Das Hintergrundprogramm hängt.</translation>
    </message>
    <message>
        <source>The background program does not run.</source>
        <translation>Das Hintergrundprogramm läuft nicht.</translation>
    </message>
    <message>
        <source>Connecting…</source>
        <translation>Verbinden…</translation>
    </message>
    <message>
        <source>Shoal: %1</source>
        <translation>Shoal: %1</translation>
    </message>
    <message>
        <source>Credit today: %1</source>
        <translation>Guthaben heute: %1</translation>
    </message>
</context>
<context>
    <name>shoal::ui::WeekGrid</name>
    <message>
        <source>%1, %2 to %3: on</source>
        <translation>%1, %2 bis %3: an</translation>
    </message>
    <message>
        <source>%1, %2 to %3: off</source>
        <translation>%1, %2 bis %3: aus</translation>
    </message>
    <message>
        <source>Hours of the week</source>
        <translation>Stunden der Woche</translation>
    </message>
    <message>
        <source>Arrow keys move, with Shift they select; the space bar switches what is selected.</source>
        <translation>Pfeiltasten bewegen, mit Umschalt wählen sie aus; die Leertaste schaltet, was ausgewählt ist.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::WhatIfCard</name>
    <message>
        <source>What if?</source>
        <translation>Was wäre, wenn?</translation>
    </message>
    <message>
        <source>Move a limit and see how long last week&apos;s work could have been. Nothing changes until you apply it.</source>
        <translation>Verschieben Sie eine Grenze und sehen Sie, wie lange letzte Woche hätte gearbeitet werden können. Nichts ändert sich, bis Sie es übernehmen.</translation>
    </message>
    <message>
        <source>Limit to move</source>
        <translation>Grenze zum Verschieben</translation>
    </message>
    <message>
        <source>&amp;Apply</source>
        <translation>&amp;Übernehmen</translation>
    </message>
    <message>
        <source>%1 (as now)</source>
        <translation>%1 (wie jetzt)</translation>
    </message>
    <message>
        <source>%1 h</source>
        <translation>%1 h</translation>
    </message>
    <message>
        <source>%1 → %2</source>
        <translation>%1 → %2</translation>
    </message>
    <message>
        <source> (+%1)</source>
        <translation> (+%1)</translation>
    </message>
    <message>
        <source> (−%1)</source>
        <translation> (−%1)</translation>
    </message>
    <message>
        <source>Shoal has not watched this computer for long enough to tell.</source>
        <translation>Shoal hat diesen Rechner noch nicht lange genug beobachtet, um es zu sagen.</translation>
    </message>
    <message>
        <source>Above: as it was allowed. Below: as it would have been. Of the %1 that Shoal was watching in the last 7 days, as if all modes had been “By my rules”.</source>
        <translation>Oben: wie es erlaubt war. Unten: wie es gewesen wäre. Von den %1, die Shoal in den letzten 7 Tagen beobachtet hat, als wären alle Betriebsarten „Nach meinen Regeln“ gewesen.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::Window</name>
    <message>
        <source>Shoal</source>
        <translation>Shoal</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
    <message>
        <source>About</source>
        <translation>Über Shoal</translation>
    </message>
    <message>
        <source>Shoal&apos;s background program does not answer. It may be busy; this window goes on by itself when it answers.</source>
        <translation>Das Hintergrundprogramm von Shoal antwortet nicht. Vielleicht ist es beschäftigt; dieses Fenster geht von selbst weiter, wenn es antwortet.</translation>
    </message>
    <message>
        <source>Shoal&apos;s background program starts…</source>
        <translation>Das Hintergrundprogramm von Shoal startet…</translation>
    </message>
    <message>
        <source>Shoal&apos;s background program did not start: %1</source>
        <translation>Das Hintergrundprogramm von Shoal startete nicht: %1</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal</translation>
    </message>
    <message>
        <source>Shoal&apos;s background program does not run, so nothing is lent.</source>
        <translation>Das Hintergrundprogramm von Shoal läuft nicht, also wird nichts verliehen.</translation>
    </message>
    <message>
        <source>Start it</source>
        <translation>Starten</translation>
    </message>
</context>
<context>
    <name>shoal::ui::WorkPage</name>
    <message>
        <source>Transfers</source>
        <translation>Übertragungen</translation>
    </message>
    <message>
        <source>Nothing is fetched now. Parts of models are fetched when work needs them, and kept.</source>
        <translation>Zurzeit wird nichts geholt. Teile von Modellen werden geholt, wenn Arbeit sie braucht, und aufgehoben.</translation>
    </message>
    <message>
        <source>History</source>
        <translation>Verlauf</translation>
    </message>
    <message>
        <source>Work now</source>
        <translation>Arbeit jetzt</translation>
    </message>
    <message>
        <source>No work has ended yet.</source>
        <translation>Noch ist keine Arbeit zu Ende.</translation>
    </message>
    <message>
        <source>Nothing is worked on now. %1</source>
        <translation>Gerade wird an nichts gearbeitet. %1</translation>
    </message>
    <message>
        <source>Nothing is worked on at this moment. More may come at any time.</source>
        <translation>In diesem Augenblick wird an nichts gearbeitet. Weiteres kann jederzeit kommen.</translation>
    </message>
</context>
<context>
    <name>shoal::ui::YieldCard</name>
    <message>
        <source>How fast you got your devices back</source>
        <translation>Wie schnell Sie Ihre Geräte zurückbekamen</translation>
    </message>
    <message>
        <source>half of the times within</source>
        <translation>in der Hälfte der Fälle binnen</translation>
    </message>
    <message>
        <source>99 of 100 times within</source>
        <translation>99 von 100 Malen binnen</translation>
    </message>
    <message>
        <source>your bound</source>
        <translation>Ihre Grenze</translation>
    </message>
    <message>
        <source>Nothing computed</source>
        <translation>Nichts rechnete</translation>
    </message>
    <message>
        <source>Memory was free</source>
        <translation>Speicher war frei</translation>
    </message>
    <message>
        <source>It has not been measured yet: that happens whenever you come back.</source>
        <translation>Noch nicht gemessen: das geschieht, wann immer Sie zurückkommen.</translation>
    </message>
    <message numerus="yes">
        <source>Measured %n time(s), never late.</source>
        <translation>
            <numerusform>%n Mal gemessen, nie zu spät.</numerusform>
            <numerusform>%n Mal gemessen, nie zu spät.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Measured %n time(s), late in %1.</source>
        <translation>
            <numerusform>%n Mal gemessen, %1 Mal zu spät.</numerusform>
            <numerusform>%n Mal gemessen, %1 Mal zu spät.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>tables</name>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Paired</source>
        <translation>Gekoppelt</translation>
    </message>
    <message>
        <source>Last used</source>
        <translation>Zuletzt benutzt</translation>
    </message>
    <message>
        <source>Hour</source>
        <translation>Stunde</translation>
    </message>
    <message>
        <source>Day</source>
        <translation>Tag</translation>
    </message>
    <message>
        <source>Week from</source>
        <translation>Woche ab</translation>
    </message>
    <message>
        <source>Month</source>
        <translation>Monat</translation>
    </message>
    <message>
        <source>%1 to %2</source>
        <translation>%1 bis %2</translation>
    </message>
    <message>
        <source>pending</source>
        <translation>offen</translation>
    </message>
    <message>
        <source>confirmed</source>
        <translation>bestätigt</translation>
    </message>
    <message>
        <source>rejected</source>
        <translation>abgelehnt</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>angehalten</translation>
    </message>
    <message>
        <source>Network</source>
        <translation>Netz</translation>
    </message>
    <message>
        <source>By my rules</source>
        <translation>Nach meinen Regeln</translation>
    </message>
    <message>
        <source>Always</source>
        <translation>Immer</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>Angehalten</translation>
    </message>
    <message>
        <source>public</source>
        <translation>öffentlich</translation>
    </message>
    <message>
        <source>anchored</source>
        <translation>verankert</translation>
    </message>
    <message>
        <source>group</source>
        <translation>Gruppe</translation>
    </message>
    <message>
        <source>Group: only computers that were invited to one group take part; their owners can read the text.</source>
        <translation>Gruppe: nur Rechner, die in eine Gruppe eingeladen wurden, nehmen teil; ihre Besitzer können den Text lesen.</translation>
    </message>
    <message>
        <source>Public: the owners of the computers that take part can read the text.</source>
        <translation>Öffentlich: die Besitzer der beteiligten Rechner können den Text lesen.</translation>
    </message>
    <message>
        <source>Anchored: the text itself stays on trusted computers; what passes through others can be guessed back by who tries hard.</source>
        <translation>Verankert: der Text selbst bleibt auf vertrauten Rechnern; was durch andere geht, lässt sich mit viel Mühe zurückraten.</translation>
    </message>
    <message>
        <source>connecting</source>
        <translation>verbindet</translation>
    </message>
    <message>
        <source>connected</source>
        <translation>verbunden</translation>
    </message>
    <message>
        <source>tries again</source>
        <translation>versucht es wieder</translation>
    </message>
    <message>
        <source>refused</source>
        <translation>abgewiesen</translation>
    </message>
    <message>
        <source>fetching</source>
        <translation>holt</translation>
    </message>
    <message>
        <source>loading</source>
        <translation>lädt</translation>
    </message>
    <message>
        <source>loaded</source>
        <translation>geladen</translation>
    </message>
    <message>
        <source>working</source>
        <translation>arbeitet</translation>
    </message>
    <message>
        <source>standing by</source>
        <translation>in Bereitschaft</translation>
    </message>
    <message>
        <source>without work</source>
        <translation>ohne Arbeit</translation>
    </message>
    <message>
        <source>asleep</source>
        <translation>schläft</translation>
    </message>
    <message>
        <source>finishing</source>
        <translation>beendet</translation>
    </message>
    <message>
        <source>quarantined</source>
        <translation>in Quarantäne</translation>
    </message>
    <message>
        <source>gone</source>
        <translation>fort</translation>
    </message>
    <message>
        <source>starting</source>
        <translation>startet</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>fehlgeschlagen</translation>
    </message>
    <message>
        <source>You at the computer</source>
        <translation>Sie am Rechner</translation>
    </message>
    <message>
        <source>Films and calls</source>
        <translation>Filme und Gespräche</translation>
    </message>
    <message>
        <source>Power supply</source>
        <translation>Stromversorgung</translation>
    </message>
    <message>
        <source>Load of other programs</source>
        <translation>Last anderer Programme</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>Grafikkarten</translation>
    </message>
    <message>
        <source>Exclusive programs</source>
        <translation>Programme für sich</translation>
    </message>
    <message>
        <source>Sleep and shutdown</source>
        <translation>Schlaf und Herunterfahren</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>Platte</translation>
    </message>
    <message>
        <source>error</source>
        <translation>Fehler</translation>
    </message>
    <message>
        <source>warning</source>
        <translation>Warnung</translation>
    </message>
    <message>
        <source>info</source>
        <translation>Hinweis</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>Lent</source>
        <translation>Verliehen</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>ja</translation>
    </message>
    <message>
        <source>no</source>
        <translation>nein</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>Warum</translation>
    </message>
    <message>
        <source>Credit today</source>
        <translation>Guthaben heute</translation>
    </message>
    <message>
        <source>Busy</source>
        <translation>Ausgelastet</translation>
    </message>
    <message>
        <source>Part of the last minute</source>
        <translation>Teil der letzten Minute</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>Leistung</translation>
    </message>
    <message>
        <source>Measured</source>
        <translation>Gemessen</translation>
    </message>
    <message>
        <source>Estimated</source>
        <translation>Geschätzt</translation>
    </message>
    <message>
        <source>Memory used</source>
        <translation>Speicher belegt</translation>
    </message>
    <message>
        <source>Stages</source>
        <translation>Abschnitte</translation>
    </message>
    <message>
        <source>Tokens one by one</source>
        <translation>Token einzeln</translation>
    </message>
    <message>
        <source>Driver</source>
        <translation>Treiber</translation>
    </message>
    <message>
        <source>Id</source>
        <translation>Kennung</translation>
    </message>
    <message>
        <source>Confirmed</source>
        <translation>Bestätigt</translation>
    </message>
    <message>
        <source>Pending</source>
        <translation>Offen</translation>
    </message>
    <message>
        <source>Rejected</source>
        <translation>Abgelehnt</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>Worked</source>
        <translation>Gearbeitet</translation>
    </message>
    <message>
        <source>Duty</source>
        <translation>Auslastung</translation>
    </message>
    <message>
        <source>Time worked, of the time that your rules allowed</source>
        <translation>Gearbeitete Zeit, von der Zeit, die Ihre Regeln erlaubten</translation>
    </message>
    <message>
        <source>Energy</source>
        <translation>Energie</translation>
    </message>
    <message>
        <source>Cost</source>
        <translation>Kosten</translation>
    </message>
    <message>
        <source>Hottest</source>
        <translation>Heißeste</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>Parts</source>
        <translation>Teile</translation>
    </message>
    <message>
        <source>Which parts of the model this computer holds</source>
        <translation>Welche Teile des Modells dieser Rechner hält</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>Schritte</translation>
    </message>
    <message>
        <source>For</source>
        <translation>Dauer</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>Daten</translation>
    </message>
    <message>
        <source>Coordinator</source>
        <translation>Koordinator</translation>
    </message>
    <message>
        <source>Lease</source>
        <translation>Auftrag</translation>
    </message>
    <message>
        <source>Shard</source>
        <translation>Modellteil</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>Fertig</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 von %2</translation>
    </message>
    <message>
        <source>Rate</source>
        <translation>Rate</translation>
    </message>
    <message>
        <source>Left</source>
        <translation>Bleibt</translation>
    </message>
    <message>
        <source>Ended</source>
        <translation>Ende</translation>
    </message>
    <message>
        <source>Lasted</source>
        <translation>Dauer</translation>
    </message>
    <message>
        <source>Why it ended</source>
        <translation>Warum zu Ende</translation>
    </message>
    <message>
        <source>Started</source>
        <translation>Beginn</translation>
    </message>
    <message>
        <source>When</source>
        <translation>Wann</translation>
    </message>
    <message>
        <source>Credit</source>
        <translation>Guthaben</translation>
    </message>
    <message>
        <source>Verdict</source>
        <translation>Urteil</translation>
    </message>
    <message>
        <source>Signature</source>
        <translation>Unterschrift</translation>
    </message>
    <message>
        <source>genuine</source>
        <translation>echt</translation>
    </message>
    <message>
        <source>does not fit</source>
        <translation>passt nicht</translation>
    </message>
    <message>
        <source>Reason</source>
        <translation>Grund</translation>
    </message>
    <message>
        <source>Number</source>
        <translation>Nummer</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>✓ The total is right</source>
        <translation>✓ Die Summe stimmt</translation>
    </message>
    <message>
        <source>✗ The totals differ</source>
        <translation>✗ Die Summen weichen ab</translation>
    </message>
    <message>
        <source>By your receipts</source>
        <translation>Nach Ihren Quittungen</translation>
    </message>
    <message>
        <source>By the coordinator</source>
        <translation>Nach dem Koordinator</translation>
    </message>
    <message>
        <source>Genuine</source>
        <translation>Echt</translation>
    </message>
    <message>
        <source>Missing</source>
        <translation>Fehlend</translation>
    </message>
    <message>
        <source>From</source>
        <translation>Von</translation>
    </message>
    <message>
        <source>Of</source>
        <translation>Gehört zu</translation>
    </message>
    <message>
        <source>What would change it</source>
        <translation>Was es ändern würde</translation>
    </message>
    <message>
        <source>Rule</source>
        <translation>Regel</translation>
    </message>
    <message>
        <source>Last work</source>
        <translation>Letzte Arbeit</translation>
    </message>
    <message>
        <source>none yet</source>
        <translation>noch keine</translation>
    </message>
    <message>
        <source>Receipts</source>
        <translation>Quittungen</translation>
    </message>
    <message>
        <source>Earned</source>
        <translation>Verdient</translation>
    </message>
    <message>
        <source>Trusts you</source>
        <translation>Vertraut Ihnen</translation>
    </message>
    <message>
        <source>Trusted computers may hold the ends of anchored sessions</source>
        <translation>Vertraute Rechner dürfen die Enden verankerter Sitzungen halten</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>State there</source>
        <translation>Zustand dort</translation>
    </message>
    <message>
        <source>Why it gets no work</source>
        <translation>Warum keine Arbeit kommt</translation>
    </message>
    <message>
        <source>Since</source>
        <translation>Seit</translation>
    </message>
    <message>
        <source>What</source>
        <translation>Was</translation>
    </message>
    <message>
        <source>Says now</source>
        <translation>Sagt jetzt</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>nicht bekannt</translation>
    </message>
    <message>
        <source>not known: %1</source>
        <translation>nicht bekannt: %1</translation>
    </message>
    <message>
        <source>Told by</source>
        <translation>Gesagt von</translation>
    </message>
    <message>
        <source>Asked</source>
        <translation>Gefragt</translation>
    </message>
    <message>
        <source>%1 ago</source>
        <translation>vor %1</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>Quelle</translation>
    </message>
    <message>
        <source>Works here</source>
        <translation>Geht hier</translation>
    </message>
    <message>
        <source>Level</source>
        <translation>Stufe</translation>
    </message>
    <message>
        <source>Module</source>
        <translation>Teil</translation>
    </message>
    <message>
        <source>Event</source>
        <translation>Ereignis</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>Einzelheiten</translation>
    </message>
    <message>
        <source>unit %1, %2 of %3 items</source>
        <translation>Einheit %1, %2 von %3 Elementen</translation>
    </message>
    <message>
        <source>Part of a job; its coordinator will say until when it is wanted back.</source>
        <translation>Teil eines Auftrags; bis wann er zurückerwartet wird, sagt der Koordinator noch.</translation>
    </message>
    <message>
        <source>Part of a job; it is wanted back by %1.</source>
        <translation>Teil eines Auftrags; wird bis %1 zurückerwartet.</translation>
    </message>
    <message>
        <source>The whole of it takes about %1.</source>
        <translation>Das Ganze dauert etwa %1.</translation>
    </message>
    <message>
        <source>unit %1</source>
        <translation>Einheit %1</translation>
    </message>
</context>
</TS>
