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
    <name>shoal::ui::OverviewPage</name>
    <message numerus="yes">
        <source>Never later than you allow, %n time(s).</source>
        <translation>
            <numerusform>Never later than you allow, in %n time.</numerusform>
            <numerusform>Never later than you allow, in %n times.</numerusform>
        </translation>
    </message>
</context>
</TS>
