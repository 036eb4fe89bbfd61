<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>Format</name>
    <message numerus="yes">
        <source>%n day(s)</source>
        <translation>
            <numerusform>%n day</numerusform>
            <numerusform>%n days</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>shoal::ui::LogPage</name>
    <message numerus="yes">
        <source>%1 of %n line(s)</source>
        <translation>
            <numerusform>%1 of %n line</numerusform>
            <numerusform>%1 of %n lines</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>shoal::ui::ModesCard</name>
    <message numerus="yes">
        <source>for %n minute(s)</source>
        <translation>
            <numerusform>for %n minute</numerusform>
            <numerusform>for %n minutes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>for %n hour(s)</source>
        <translation>
            <numerusform>for %n hour</numerusform>
            <numerusform>for %n hours</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>shoal::ui::OverviewPage</name>
    <message numerus="yes">
        <source>Never later than you allow, %n time(s).</source>
        <translation>
            <numerusform>Never later than you allow, in %n time.</numerusform>
            <numerusform>Never later than you allow, in %n times.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>shoal::ui::YieldCard</name>
    <message numerus="yes">
        <source>Measured %n time(s), never late.</source>
        <translation>
            <numerusform>Measured once, never late.</numerusform>
            <numerusform>Measured %n times, never late.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Measured %n time(s), late in %1.</source>
        <translation>
            <numerusform>Measured once, late in %1.</numerusform>
            <numerusform>Measured %n times, late in %1.</numerusform>
        </translation>
    </message>
</context>
</TS>
