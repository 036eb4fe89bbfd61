#include "tests/chat/examples.h"

namespace shoal {

const std::string_view kExampleVariables =
    R"~({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo", "n": 2}], "d": {"b": 1, "A": [1, 2.5, null], "c": {"x": "é<"}}, "xs": [3, 1, 2, 1], "s": "  héllo wörld  ", "e": [], "t": true, "z": 0, "name": "ada"})~";

namespace {

constexpr Example kExamples[] = {
    {"text and output", "a{{ name }}b", "aadab"},
    {"loops in loops are no deeper, as none is recursive",
     "{% for x in [1] %}{% for y in [1] %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{% endfor "
     "%}",
     "10"},
    {"rounding goes by decimal digits", "{{ 2.675 | round(2) }} {{ 5 | round }} {{ 2.5 | round }}",
     "2.67 5 2.0"},
    {"there is a negative zero", "{{ -0.0 }} {{ -(2.5) }} {{ +1.5 }}", "-0.0 -2.5 1.5"},
    {"searches go over all of a long text",
     "{% set a = 'ab' * 3000 ~ 'c' %}{{ a.find('bc') }} {{ a.split('bc') | length }} {{ "
     "a.count('ba') "
     "}} {{ 'bc' in a }} {{ 'cc' in a }} {{ '' in a }} {{ a.find('c') }} {{ a.find('cx') }}",
     "5999 2 2999 True False True 6000 -1"},
    {"trim_blocks takes the newline after a block", "{% if t %}\nx\n{% endif %}\ny", "x\ny"},
    {"lstrip_blocks takes the space before a block", "a\n  {% if t %}\n  x\n  {% endif %}\nb",
     "a\n  x\nb"},
    {"lstrip_blocks leaves what follows text", "a {% if t %}x{% endif %}", "a x"},
    {"a plus keeps space", "a\n  {%+ if t +%}\nx{% endif %}", "a\n  \nx"},
    {"outputs keep their lines", "  {{ name }}\n  {{ name }}\n", "  ada\n  ada"},
    {"minus takes all space", "a \n {{- name -}} \n b {%- if t -%} \n c {%- endif %}", "aadabc"},
    {"comments", "a{# no {{ name }} #}b{#- x -#} c", "abc"},
    {"raw", "{% raw %}{{ name }} {% if %}{% endraw %}!", "{{ name }} {% if %}!"},
    {"the last newline goes", "x\n", "x"},
    {"carriage returns are newlines", "a\r\nb\rc", "a\nb\nc"},
    {"if elif else", "{% if z %}a{% elif e %}b{% elif t %}c{% else %}d{% endif %}", "c"},
    {"for with loop",
     "{% for x in xs %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 "
     "}}/{{ loop.length }}{% if loop.first %}F{% endif %}{% if loop.last %}L{% endif %}={{ x }};{% "
     "endfor %}",
     "1/0/4/3/4F=3;2/1/3/2/4=1;3/2/2/1/4=2;4/3/1/0/4L=1;"},
    {"for else", "{% for x in e %}x{% else %}none{% endfor %}", "none"},
    {"for with a condition",
     "{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}",
     "1:3/2 2:2/2 "},
    {"for unpacks",
     "{% for k, v in d.items() %}{{ k }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}",
     "b;A;c;bAc"},
    {"neighbours", "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
     "<3>1 3<1>2 1<2>1 2<1> "},
    {"cycle and changed",
     "{% for x in xs %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x == 1) }} {% endfor %}",
     "aTrue bTrue aTrue bTrue "},
    {"break and continue",
     "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% "
     "endif %}{{ x }}{% endfor %}",
     "0134"},
    {"a loop has its own names",
     "{% set a = 1 %}{% for x in xs %}{% set a = x %}{{ a }}{% endfor %}{{ a }}", "31211"},
    {"an if has not", "{% if t %}{% set a = 5 %}{% endif %}{{ a }}", "5"},
    {"a namespace is written from inside",
     "{% set ns = namespace(a=1, b='x') %}{% for x in xs %}{% set ns.a = ns.a + x %}{% endfor %}{{ "
     "ns.a }}{{ ns.b }}{% set ns.c = 3 %}{{ ns.c }}",
     "8x3"},
    {"set unpacks", "{% set a, b = 1, 'two' %}{{ b }}{{ a }}{% set (c, d2) = (3, 4) %}{{ c + d2 }}",
     "two17"},
    {"set block",
     "{% set a %}x{{ name }}{% endset %}[{{ a }}]{% set b | upper | trim %} y {% endset %}[{{ b "
     "}}]",
     "[xada][Y]"},
    {"macro",
     "{% macro m(a, b=2, c='z') %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, c=9) "
     "}}{{ m(b=5, a=4) }}",
     "1-2-z;1-2-9;4-5-z;"},
    {"macro sees what is set later",
     "{% macro m() %}{{ later }}{% endmacro %}{% set later = 1 %}{{ m() }}", "1"},
    {"recursion",
     "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
     "4321"},
    {"call block",
     "{% macro m(a) %}<{{ caller(a) }}>{% endmacro %}{% call(x) m(7) %}got {{ x }}{% endcall %}",
     "<got 7>"},
    {"filter block", "{% filter upper | replace('A', 'o') %}ab{{ name }}{% endfilter %}", "oBoDo"},
    {"with", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}[{{ a }}]", "3[]"},
    {"generation",
     "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %},{% endfor %}",
     "Hi,Yo,"},
    {"arithmetic",
     "{{ 1 + 2 * 3 - 4 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1.5 "
     "+ 1 }} {{ 6 / 2 }} {{ -(3) }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}",
     "3 3.5 3 -4 2 1024 2.5 3.0 -3 3.0 0.5"},
    {"precedence of filters and tests",
     "{{ 'a' + ' b ' | trim }} {{ not z is none }} {{ -1 | abs }} {{ 1 + 2 | string | length }}",
     "ab True 1 2"},
    {"concatenation",
     "{{ 'a' ~ 1 ~ none ~ true ~ 1.0 }} {{ 'a' 'b' }} {{ 'ab' * 3 }} {{ [1] + [2] }}",
     "a1NoneTrue1.0 ab ababab [1, 2]"},
    {"comparison chains",
     "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' == 'a' }} {{ 1 == 1.0 }} {{ true == 1 }} {{ [1, 'a'] "
     "== [1, 'a'] }} {{ 'a' < 'b' }} {{ {'a': 1} == {'a': 1.0} }}",
     "True False True True True True True True"},
    {"logic gives operands", "{{ z or 'x' }} {{ 'a' and 'b' }} {{ e or none }} {{ not e }}",
     "x b None True"},
    {"in",
     "{{ 'ell' in 'hello' }} {{ 3 in xs }} {{ 'b' in d }} {{ 9 not in xs }} {{ 'x' in missing }}",
     "True True True True False"},
    {"inline if", "{{ 'a' if t else 'b' }}{{ 'a' if z }}{{ 'a' if z else 'b' if z else 'c' }}",
     "ac"},
    {"literals",
     "{{ [1, 'a', none, true, 2.0] }} {{ (1,) }} {{ (1, 2) }} {{ {'k': 'v', 'n': [1]} }} {{ () }} "
     "{{ 1_000 }} {{ 1e3 }}",
     "[1, 'a', None, True, 2.0] (1,) (1, 2) {'k': 'v', 'n': [1]} () 1000 1000.0"},
    {"escapes", R"~({{ 'a\nb\t\\\'\x41\u00e9\q' }} {{ "q'\"" }})~", "a\nb\t\\'Aé\\q q'\""},
    {"slices of lists",
     "{{ xs[1:] }} {{ xs[:-1] }} {{ xs[::-1] }} {{ xs[::2] }} {{ xs[-2:] }} {{ xs[5:] }} {{ "
     "xs[2:0:-1] }} {{ (1, 2, 3)[1:] }}",
     "[1, 2, 1] [3, 1, 2] [1, 2, 1, 3] [3, 2] [2, 1] [] [2, 1] (2, 3)"},
    {"slices of texts",
     "{{ s[2:7] }}|{{ s[::-1] }}|{{ s[-9:-2] }}|{{ 'añ🙂b'[1:3] }}|{{ 'añ🙂b'[2] }}|{{ "
     "'añ🙂b'|length }}",
     "héllo|  dlröw olléh  |o wörld|ñ🙂|🙂|4"},
    {"index",
     "{{ messages[0].role }} {{ messages[-1]['content'] }} {{ messages[9] is defined }} {{ "
     "d['c'].x }} {{ d.c['x'] }} {{ xs.0 }} {{ d.missing is undefined }}",
     "user Yo False é< é< 3 True"},
    {"undefined prints nothing",
     "[{{ missing }}] {{ missing is defined }} {{ missing or 1 }} {% for x in missing %}x{% endfor "
     "%}{{ missing | length }}",
     "[] False 1 0"},
    {"tests",
     "{{ t is true }}{{ z is false }}{{ 1 is number }}{{ 1.0 is float }}{{ 1 is integer }}{{ true "
     "is integer }}{{ true is boolean }}{{ 's' is string }}{{ d is mapping }}{{ xs is sequence "
     "}}{{ xs is iterable }}{{ 1 is iterable }}{{ none is none }}{{ range is callable }}",
     "TrueFalseTrueTrueTrueFalseTrueTrueTrueTrueTrueFalseTrueTrue"},
    {"tests with arguments",
     "{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 1 is equalto(1) }} {{ 1 is eq 2 "
     "}} {{ 'a' is in ['a'] }} {{ 2 is gt 1 }} {{ 2 is not lt 1 }} {{ 'AB' is upper }} {{ 'ab' is "
     "lower }} {{ name is sameas none }}",
     "True True True True False True True True True True False"},
    {"tojson",
     R"~({{ d | tojson }} {{ 'a"\\\n\x01é' | tojson }} {{ xs | tojson(indent=2) }} {{ {'b': 1, 'a': {}} | tojson(indent=1, sort_keys=true) }} {{ 'é🙂' | tojson(ensure_ascii=true) }} {{ [1, {'a': none}] | tojson(separators=(',', ':')) }} {{ {1: true} | tojson }})~",
     R"~({"b": 1, "A": [1, 2.5, null], "c": {"x": "é<"}} "a\"\\\n\u0001é" [
  3,
  1,
  2,
  1
] {
 "a": {},
 "b": 1
} "\u00e9\ud83d\ude42" [1,{"a":null}] {"1": true})~"},
    {"trim and case",
     "[{{ s | trim }}] {{ 'aBc dEf-gh' | upper }} {{ 'ÀÉ' | lower }} {{ 'aBc dEf-gh' | title }} {{ "
     "'aBc d' | capitalize }} {{ 'xxaxx' | trim('x') }} {{ 'strase ΩЖ' | upper | lower }}",
     "[héllo wörld] ABC DEF-GH àé Abc Def-Gh Abc d a strase ωж"},
    {"lengths", "{{ xs | length }} {{ d | count }} {{ '' | length }}", "4 3 0"},
    {"joins",
     "{{ xs | join(', ') }} {{ xs | join }} {{ messages | join('/', attribute='content') }} {{ ', "
     "'.join(['a', 'b']) }}",
     "3, 1, 2, 1 3121 Hi/Yo a, b"},
    {"map and select",
     "{{ messages | map(attribute='role') | list }} {{ ['a', 'b'] | map('upper') | join }} {{ xs | "
     "select('odd') | list }} {{ xs | reject('equalto', 1) | list }} {{ [0, 1] | select | list }} "
     "{{ messages | map(attribute='n', default=7) | list }}",
     "['user', 'assistant'] AB [3, 1, 1] [3, 2] [1] [7, 2]"},
    {"selectattr",
     "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first }} {{ "
     "messages | rejectattr('n', 'defined') | list | length }} {{ messages | selectattr('n') | "
     "list | length if false else '' }}",
     "Hi 1 "},
    {"default",
     "{{ missing | default('x') }} {{ z | default('x') }} {{ z | default('x', true) }} {{ missing "
     "| d }} {{ none | default(1) }} {{ e | default('y', boolean=true) }}",
     "x 0 x  None y"},
    {"replace first last",
     "{{ 'aXbXc' | replace('X', '-') }} {{ 'aXbXc' | replace('X', '-', 1) }} {{ xs | first }} {{ "
     "xs | last }} {{ 'abc' | first }} {{ e | first is defined }}",
     "a-b-c a-bXc 3 1 a False"},
    {"conversions",
     "{{ '42' | int + 1 }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ '2.7' | int }} {{ 3.9 | int }} {{ "
     "'1.5' | float }} {{ 3 | float }} {{ 1.0 | string + '!' }} {{ 'ab' | list }} {{ d | list }} "
     "{{ 'x' | float }}",
     "43 0 7 2 3 1.5 3.0 1.0! ['a', 'b'] ['b', 'A', 'c'] 0.0"},
    {"indent",
     R"~({{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(1, blank=true) }}|{{ 'a\nb' | indent('> ') }})~",
     "a\n    b\n\n    c|  a\n  b|a\n \n b|a\n> b"},
    {"unique sort dictsort",
     "{{ xs | unique | list }} {{ xs | sort }} {{ xs | sort(reverse=true) }} {{ ['b', 'A', 'a', "
     "'B'] | sort }} {{ ['b', 'A', 'a'] | sort(case_sensitive=true) }} {{ ['b', 'B', 'a'] | unique "
     "| list }} {{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'A': 2} | dictsort(by='value', "
     "reverse=true) }} {{ messages | sort(attribute='content', reverse=true) | "
     "map(attribute='content') | list }}",
     "[3, 1, 2] [1, 1, 2, 3] [3, 2, 1, 1] ['A', 'a', 'b', 'B'] ['A', 'a', 'b'] ['b', 'a'] [('A', "
     "2), ('b', 1)] [('A', 2), ('b', 1)] ['Yo', 'Hi']"},
    {"items and reverse",
     "{{ d.c | items | list }} {{ xs | reverse | list }} {{ 'abc' | reverse }} {{ missing | items "
     "| list }}",
     "[('x', 'é<')] [1, 2, 1, 3] cba []"},
    {"numbers",
     "{{ -3 | abs }} {{ 2.5 | round }} {{ 2.567 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ 2.9 "
     "| round(method='floor') | int }} {{ xs | sum }} {{ xs | min }} {{ xs | max }} {{ 0.1 + 0.2 "
     "}} {{ 1e16 }} {{ 1e-5 }} {{ 123456789.5 }} {{ 100.0 }}",
     "3 2.0 2.57 3.0 2 7 1 3 0.30000000000000004 1e+16 1e-05 123456789.5 100.0"},
    {"escape and safe", R"~({{ '<a href="x">&\'' | e }} {{ '<' | safe }})~",
     "&lt;a href=&#34;x&#34;&gt;&amp;&#39; <"},
    {"text methods",
     R"~({{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xxaxy'.strip('xy') }}|{{ 'aXb'.split('X') }}|{{ ' a  b '.split() }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ 'abc'.startswith('ab') }}|{{ 'abc'.endswith(('x', 'c')) }}|{{ 'ab'.upper() }}|{{ 'AB'.lower() }}|{{ "they're bill's".title() }}|{{ 'aBC'.capitalize() }}|{{ 'aaa'.replace('a', 'b', 2) }}|{{ 'abcb'.find('b') }}|{{ 'abcb'.rfind('b') }}|{{ 'abcb'.count('b') }}|{{ 'a\nb\r\nc'.splitlines() }}|{{ 'abc'.removeprefix('a').removesuffix('c') }}|{{ '12'.isdigit() }}|{{ '{}-{0}{{'.format(1) if false else '{}-{}'.format('a', 2) }}|{{ 'ab'.replace('', '-') }})~",
     "héllo wörld|héllo wörld  |  héllo wörld|a|['a', 'b']|['a', 'b']|['a', 'b,c']|['a,b', "
     "'c']|True|True|AB|ab|They'Re Bill'S|Abc|bba|1|3|2|['a', 'b', 'c']|b|True|a-2|-a-b-"},
    {"list and dict methods",
     "{{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.keys() | list }} {{ d.c.values() "
     "| list }} {{ xs.index(2) }} {{ xs.count(1) }}",
     "1 None 5 ['b', 'A', 'c'] ['é<'] 2 2"},
    {"a method wins over a key by a dot",
     "{{ {'items': 1}['items'] }} {{ {'get': 1, 'x': 2}.get('x') }}", "1 2"},
    {"functions",
     "{{ range(3) | list }} {{ range(1, 7, 2) | list }} {{ range(3, 0, -1) | list }} {{ dict(a=1, "
     "b='x') }} {{ namespace(a=1).a }}",
     "[0, 1, 2] [1, 3, 5] [3, 2, 1] {'a': 1, 'b': 'x'} 1"},
    {"python prints",
     R"~({{ "it's" | list | length }} {{ ["it's", 'q"', 'a\n\\', '\x7fé\u200b'] }} {{ [1.0, 1e20, true, none] }} {{ [(1, 2)] }})~",
     R"~(4 ["it's", 'q"', 'a\n\\', '\x7fé\u200b'] [1.0, 1e+20, True, None] [(1, 2)])~"},
    {"strftime", "{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %a %A %j %y %I %p %%') }}",
     "2026-12-01 00:30:05 01 Dec December Tue Tuesday 335 26 12 AM %"},
    {"deep",
     "{% for m in messages %}{% if m.role == 'user' %}{{ '<' + m['role'] + '>' + m.content | trim "
     "}}{% elif m.role == 'assistant' and m.n is defined %}{{ m.n }}{% endif %}{% endfor %}",
     "<user>Hi2"},
    {"conditions with tuples",
     "{% for a, b in [(1, 2), (3, 4)] %}{{ a * b }},{% endfor %}{% set x = 1, %}{{ x }}",
     "2,12,(1,)"},
    {"tuple targets and zip of items",
     "{% for k, v in {'a': [1, 2], 'b': []} | items %}{{ k }}={{ v | length }} {% endfor %}",
     "a=2 b=0 "},
};

}  // namespace

std::span<const Example> examples() { return kExamples; }

}  // namespace shoal
