<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context>
    <name>Contribute</name>
    <message>
        <source>15 minutes</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 hour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>4 hours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Until tomorrow %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Until I resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Working</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Needs attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Offline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Graphics cards</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Processor</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Network</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>Format</name>
    <message>
        <source>%1 s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 h</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n day(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>%1 %2 h</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1/s</source>
        <comment>a rate</comment>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 billion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 million</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>d MMM yyyy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 %2</source>
        <comment>date, time</comment>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>tomorrow %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>yesterday %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 %2</source>
        <comment>weekday, time</comment>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>d MMM</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>just now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 ago</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>messages</name>
    <message>
        <source>{0} does not work: {1}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} computes other results than it should: it gets no work.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The disk has no room for Shoal&apos;s records: {0}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No device is switched on for lending.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Switch a device on under Devices.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} refuses this computer: {1}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking for the devices of this computer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} is not there now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal takes it again by itself as soon as its driver shows it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This device is not lent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Switch it on under Devices.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The devices of this computer cannot be listed: {0}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} is getting ready.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You chose to work always.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You paused this until you resume it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose Resume.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You paused this until {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connecting to {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer has not joined a coordinator yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join one under Coordinators with the URL that you were given.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} cannot be reached: {1}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal tries again by itself, next in {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Computing {0} of the time at most, as you chose.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells this device&apos;s temperature, so it cannot be held. Computing {0} of the time at most.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells this device&apos;s power, so it cannot be held. Computing {0} of the time at most.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Slowed to {0} of the time to stay at {1}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every receipt of {0} is genuine, and together they are the credit that it states.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What this computer keeps of old receipts of {0} was changed by somebody.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The receipts of {0} are worth {1} credits together, but it states {2}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The signature of {1} receipts of {0} is false.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ask whoever runs the coordinator, unless this computer&apos;s records were changed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} owes you {1} receipts.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal asks for them by itself whenever it is connected.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} has judged the same work more than once, {1} times.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every receipt of {0} is genuine. What credit it states is not known while it cannot be reached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your decisions about kinds of work could not be read: {0}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Please look through them under Coordinators.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal&apos;s records were damaged. They were set aside as {0}, and new ones have been started.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal&apos;s records cannot be kept: {0}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Another program is holding Shoal&apos;s records. What happens meanwhile is remembered and written later.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal&apos;s records were written by a newer version of Shoal, so nothing is added to them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Install the newer version again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer runs on battery, and nothing tells how full it is.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Plug it in, or set the lowest charge to 0 under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer runs on battery, which is at {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when it is above {0}, or when you plug it in.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells whether this computer runs on battery, so it counts as if it did.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>If it has no battery, allow work on battery under Rules and set the lowest charge to 0.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You chose other hours for computing. The next begin at {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change the hours under Rules, or choose &apos;always&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You chose no hours for computing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose hours under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other programs use {0} of the processor.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when they use less than {0}. The limit is under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells how much other programs use the processor.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set the limit for other programs to 100 % under Rules to work without it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The disk for models has only {0} left.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when {0} are free. Make room, or lower the limit under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells how much room the disk for models has. You want {0} to stay free.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set that limit to its default or to 0 under Rules to work without it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal used {0} today, which is all that you allow.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts after midnight, or when you allow more under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal used {0} this month, which is all that you allow.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts with the next month, or when you allow more under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A game is being played.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when the game ends.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other programs use {0} of this graphics card.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells how much other programs use this graphics card.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set the limit for other programs to its default or to 100 % under Rules to work without it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} keeps the screen on.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when it lets go. Or switch off &apos;wait while a program keeps the screen on&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} keeps the screen on: {1}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells whether a program keeps the screen on, such as a film or a call.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Switch off &apos;wait while a program keeps the screen on&apos; under Rules to work without it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You wanted this computer back at {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose another time to leave by, or none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only {0} of memory are free.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when {0} are free. Close programs, or lower the limit under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells how much memory is free. You want {0} to stay free.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The network is metered: what it carries may cost you money.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Use another network, or allow metered ones under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You chose other hours for the network. The next begin at {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You chose no hours for the network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer is not connected to a network.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connect it. Shoal goes on by itself.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer runs on battery.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Plug it in, or allow work on battery under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You used this computer {0} ago.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts after {0} without input. Or allow work while the computer is in use.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&apos;{0}&apos;, which should tell whether somebody uses this computer, does not answer. So it counts as in use.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose &apos;auto&apos; or another source under Rules, or choose &apos;always&apos;.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells whether somebody uses this computer, so it counts as in use.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose &apos;always&apos;, or allow work while the computer is in use.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer is saving power.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose another power profile, or allow work while saving power under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Electricity costs {0} a kilowatt-hour now. You allow {1}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when it is cheaper. The prices and the limit are under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} is running, and you want it to have the computer to itself.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts when {0} ends.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells whether one of the programs runs that shall have the computer to themselves.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take the programs off the list under Rules to work without it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer is about to sleep or to shut down.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work goes on when it wakes up.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It is too hot: {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work starts at {0}. Let it cool, or raise the limit under Rules.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing tells its temperature. You want it to stay under {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set that limit to its default under Rules to work without it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal sent and fetched {0} this month, which is all that you allow.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The processor is at {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The processor&apos;s energy counter can be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} are free on the disk that keeps shards.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A game has asked for GameMode.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Graphics cards seen: {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is no graphics card.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Graphics cards seen: {0}. The hottest is at {1}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody touched this computer for {0}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nobody touched this computer for {0}, and it is locked.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No program keeps the screen on.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Other programs use {0} of the processors.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} of memory are free.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Online, and not metered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Online, and metered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Offline.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Online. Nothing tells whether the network is metered.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On battery. Charge: {0}. Power profile: {1}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>On line power. Battery charge: {0}. Power profile: {1}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{0} runs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No exclusive program runs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The computer stays awake.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The computer is about to sleep or to end.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal was not running.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You do not allow work of this kind.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The coordinator took it back.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The owner needs this device.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No step came for too long.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Ready. Work may come at any time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Working on {0}.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>pages</name>
    <message>
        <source>Overview</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Statistics</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Devices</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rules</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Coordinators</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Log</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>settings</name>
    <message>
        <source>While in use</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Programs and load</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Power and heat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Network</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory and disk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Energy and cost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Advanced</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::About</name>
    <message>
        <source>Shoal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends this computer to large language models, when you do not need it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As the desktop</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Colours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start Shoal when I log in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tell me by notifications when I am needed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Colours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the first steps again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit Shoal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Licence</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This program uses Qt Charts and is free software under the GNU General Public License, version 3. It comes without any warranty. The background program and all others of Shoal have a licence of their own, in the file LICENSE.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Version %1 of this window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Version %1 of the background program, process %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its records are in %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The background program does not run.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::Banner</name>
    <message>
        <source>Close this note</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::Chart</name>
    <message>
        <source>Table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the figures of this chart as a table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 as a table</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1
%2: %3</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: at most %2, %3</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::ClientProcess</name>
    <message>
        <source>It does not answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>systemd could not start it: %1 Its log: journalctl --user -u %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 is missing. Install Shoal again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 could not be started.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::CoordinatorsPage</name>
    <message>
        <source>Nothing here yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::DataTable</name>
    <message>
        <source>&amp;Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Select &amp;all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Save as CSV…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>C&amp;olumns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Filter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Filter of %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show only rows that contain this text (Ctrl+F)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the selected rows (Ctrl+C)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the selected rows of %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save CSV…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save the rows shown as a file for spreadsheets</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save %1 as CSV</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Columns</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose the columns to show</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Columns of %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save as CSV</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Comma-separated values (*.csv)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 cannot be written: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No row fits the filter.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::DeviceCard</name>
    <message>
        <source>Not lent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Power</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Power, estimated</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Busy, last minute</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Credit today</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::DevicesPage</name>
    <message>
        <source>Nothing here yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::EmptyState</name>
    <message>
        <source>Shoal does not run</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This window shows what the background program does. It appears here as soon as that program runs.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::Guide</name>
    <message>
        <source>the text stays on trusted computers; yours sees numbers only</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>public text: the owners of the computers could read it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Waiting for an answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Not now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look around first. You can join under Coordinators at any time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A coordinator hands out the work. Whoever runs it gave you a URL that begins with shoal:// and holds your invitation. Put it in here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The coordinator&apos;s URL</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The URL also holds the coordinator&apos;s key, so nobody can put himself in between. Nothing is sent before you have seen what the coordinator asks.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal now checks that each device computes the very same bits as all others, and how fast it is. This takes less than a minute for each.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress of the measurement</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Which devices do you lend? Shoal stops at once when you come back, so that you never wait for your own computer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start Shoal when I log in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Step %1 of 5</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Later</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join a coordinator</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show what it asks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Join</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measure this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose devices</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>That is all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Finish</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal works when your rules allow it: at first while nobody uses this computer. The Overview says at any time whether it works and why. Pause it there, or in the tray.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Put in the URL that you were given.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Asking the coordinator…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What %1 asks</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Allow work on %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>up to %1 to download; %2 credit for a thousand tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It has no work now. You can join and judge each kind of work when it comes, under Coordinators.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>These kinds of work may come. Leave out what you do not want; you can change it later under Coordinators.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Joining…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All devices that you lend are measured.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measuring %1 (%2 of %3)…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 could not be measured: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Not measured yet. %1 of memory.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It computes other bits than the rest, so it gets no work.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 tokens a second for one block of a model; exact. %2 of memory.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::LogPage</name>
    <message>
        <source>Nothing here yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::Notices</name>
    <message>
        <source>Shoal needs your attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your first credit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work of this computer was accepted for the first time. Thank you.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your pause is over</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal goes by your rules again.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open Shoal</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::OverviewPage</name>
    <message>
        <source>Today</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show devices</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 refuses this computer: %2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show coordinators</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This computer has not joined a coordinator yet, so no work can come.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Join one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Credit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 ever</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Computing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>of %1 allowed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Energy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When you come back, this computer is yours within %1; its memory is free within %2. Both are measured each time.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When you came back, this computer was yours after %1 (99 of 100 times within %2), its memory after %3 (%4).</source>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>Never later than you allow, %n time(s).</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>Later than you allow: %1 of %2 times.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::ResourceCard</name>
    <message>
        <source>By rules</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: by rules</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Works when your rules allow it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Always</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: always</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Works even while you use this computer; the limits of temperature, memory and disk still hold</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Paused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: paused</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Does not work until the time that you choose</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>By rules again in %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::RulesPage</name>
    <message>
        <source>Nothing here yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::SettingEditor</name>
    <message>
        <source>Another one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add to: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Add</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove from: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every hour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: every hour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nights and weekends</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: nights and weekends</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clear</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: clear</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1 of 168 hours</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Never: no hour is chosen.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>These hours cannot be shown as a grid.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Some begin or end within a half hour; a change here rounds them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the default</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1: back to the default</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Acts when Shoal starts again.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::Shell</name>
    <message>
        <source>That did not work</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal goes on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You find it as a small icon in the panel.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This desktop has no place for tray icons now, so Shoal shows this window instead. When you close it, work goes on in the background; start Shoal again to see it. On GNOME, the extension AppIndicator brings the icon back.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit Shoal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shall this computer go on lending when Shoal&apos;s window and icon are gone?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Go on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Stop lending</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Do not ask again</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::StateCard</name>
    <message>
        <source>Contribute</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Lends this computer, or pauses everything until you resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Switch off to pause everything until you resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Pause for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change this rule</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>I need this computer at</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The time at which you need this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Set the time at which you need this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Until then only work that ends in time is taken, and then none until you say so</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No longer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You no longer need this computer at a certain time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You need this computer at %1.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Changes at %1, in %2.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::StatisticsPage</name>
    <message>
        <source>Nothing here yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::Tray</name>
    <message>
        <source>&amp;Contribute</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Pause for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Start Shoal&apos;s background program</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Open Shoal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The background program hangs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The background program does not run.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Connecting…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Credit today: %1</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::WeekGrid</name>
    <message>
        <source>%1, %2 to %3: on</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%1, %2 to %3: off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hours of the week</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Arrow keys move, with Shift they select; the space bar switches what is selected.</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::Window</name>
    <message>
        <source>Shoal</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal&apos;s background program does not answer. It may be busy; this window goes on by itself when it answers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal&apos;s background program starts…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal&apos;s background program did not start: %1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Try again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shoal&apos;s background program does not run, so nothing is lent.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Start it</source>
        <translation type="unfinished"></translation>
    </message>
</context>
<context>
    <name>shoal::ui::WorkPage</name>
    <message>
        <source>Nothing here yet</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
