"""What Jinja itself makes of the lines of conversations.mjs, set up as Hugging Face's library does.

Reads those lines, writes a line for each conversation: {"text": ...} or {"text": null, "why": ...}.
"""
import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


class Refused(Exception):
    pass


def refuse(message):
    raise Refused(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


NOW = datetime.datetime(2026, 12, 1, 0, 30, 5)
environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
environment.filters["tojson"] = to_json
environment.globals["raise_exception"] = refuse
environment.globals["strftime_now"] = NOW.strftime

template, tokens, broken = None, {}, ""
for line in sys.stdin:
    given = json.loads(line)
    if "source" in given:
        tokens = {"bos_token": given["bos"], "eos_token": given["eos"]}
        try:
            template, broken = environment.from_string(given["source"]), ""
        except Exception as error:
            template, broken = None, str(error)
        continue
    answer = {"text": None, "why": broken}
    if template is not None:
        try:
            answer = {"text": template.render(**{**json.loads(given["variables"]), **tokens})}
        except Exception as error:
            answer["why"] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(answer) + "\n")
