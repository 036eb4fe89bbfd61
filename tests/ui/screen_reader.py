#!/usr/bin/env python3
"""What a screen reader meets in Shoal's window: walks the tree over AT-SPI, page by page, says every control that
has no name, and uses the big switch. Exit code 1 with the findings when something is wrong."""
import sys
import time

import pyatspi

CONTROLS = {
    pyatspi.ROLE_PUSH_BUTTON, pyatspi.ROLE_TOGGLE_BUTTON, pyatspi.ROLE_CHECK_BOX, pyatspi.ROLE_RADIO_BUTTON,
    pyatspi.ROLE_COMBO_BOX, pyatspi.ROLE_TABLE, pyatspi.ROLE_LIST, pyatspi.ROLE_SLIDER, pyatspi.ROLE_SPIN_BUTTON,
    pyatspi.ROLE_PROGRESS_BAR, pyatspi.ROLE_PAGE_TAB, pyatspi.ROLE_MENU_ITEM,
}
PAGES = ["Overview", "Statistics", "Work", "Devices", "Rules", "Coordinators", "Log", "About"]


def children(node):
    for index in range(min(node.childCount, 400)):
        child = node.getChildAtIndex(index)
        if child is not None:
            yield child


def walk(node, depth=0):
    yield node
    # Cells are the rows' own text, and there may be thousands. What a page holds that is not on screen is walked when
    # it is.
    if depth > 1 and not node.getState().contains(pyatspi.STATE_SHOWING):
        return
    if depth < 30 and node.getRole() not in (pyatspi.ROLE_TABLE, pyatspi.ROLE_COMBO_BOX):
        for child in children(node):
            yield from walk(child, depth + 1)


def shows(node):
    states = node.getState()
    return states.contains(pyatspi.STATE_SHOWING) and states.contains(pyatspi.STATE_VISIBLE)


def application():
    for _ in range(100):
        for node in children(pyatspi.Registry.getDesktop(0)):
            if node.name and node.name.lower() == "shoal" and node.childCount > 0:
                return node
        time.sleep(0.1)
    sys.exit("Shoal is not on the accessibility bus")


def find(root, name):
    for node in walk(root):
        if node.name == name and node.getRole() in CONTROLS and shows(node):
            return node
    return None


def press(node):
    action = node.queryAction()
    for index in range(action.nActions):
        if action.getName(index).lower() in ("press", "toggle", "click"):
            return action.doAction(index)
    sys.exit(f"{node.name} has no action: {[action.getName(i) for i in range(action.nActions)]}")


def settled_controls():
    """Every control on screen, once two looks see the same: a page asks the client for a part of what it shows."""
    before = None
    for _ in range(40):
        controls = [node for node in walk(app) if node.getRole() in CONTROLS and shows(node)]
        names = [(node.getRole(), node.name) for node in controls]
        if names == before:
            return controls
        before = names
        time.sleep(0.1)
    sys.exit("the page does not come to rest")


app = application()
unnamed, seen = [], 0
for page in PAGES:
    button = find(app, page)
    if button is None:
        sys.exit(f"there is no way to the page {page}")
    press(button)
    for node in settled_controls():
        seen += 1
        if not node.name:
            unnamed.append(f"{page}: a {node.getRoleName()} in {node.parent.name or node.parent.getRoleName()}")
if unnamed:
    sys.exit("\n".join(unnamed))
if seen < 60:
    sys.exit(f"only {seen} controls were seen")
press(find(app, "Overview"))
switch = None
for _ in range(100):
    switch = find(app, "Contribute")
    if switch is not None:
        break
    time.sleep(0.05)
if switch is None or not switch.getState().contains(pyatspi.STATE_CHECKED):
    sys.exit("Contribute is not there, or not on")
press(switch)
print(f"{seen} controls on {len(PAGES)} pages, all with a name")
