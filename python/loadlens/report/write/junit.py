"""Objectives as JUnit XML, the form that CI systems show: one test for each objective.

Missed is a failure, no figure to judge by an error, undecided is skipped. The first test is the load itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from loadlens.model.finding import NotMeasured
from loadlens.model.report import ObjectiveRow
from loadlens.present import numbers, words


def junit(name: str, objectives: Sequence[ObjectiveRow], *, seconds: float, fault: str = "") -> str:
    """Return a suite as XML.

    Args:
        name: What was loaded.
        objectives: Judged objectives.
        seconds: Length of the load.
        fault: Reason why the load itself says nothing; empty: it is valid and something succeeded.
    """
    suite = ElementTree.Element("testsuite", name=words.plain(name), time=f"{seconds:.3f}")
    load = ElementTree.SubElement(suite, "testcase", classname="loadlens", name="load", time=f"{seconds:.3f}")
    if fault:
        ElementTree.SubElement(load, "failure", message=words.plain(fault))
    for row in objectives:
        title = " · ".join(part for part in (row.case, f"{row.objective} {row.limit}") if part)
        named = {"classname": "loadlens", "name": words.plain(title), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", named)
        shown = numbers.show(row.figure)
        if row.state == "bad":
            ElementTree.SubElement(case, "failure", message=f"{row.word}: {shown.with_interval}")
        elif isinstance(row.figure, NotMeasured):
            ElementTree.SubElement(case, "error", message=row.word)
        elif row.state != "ok":
            value = f"; {shown.with_interval}" if shown.state == "measured" else ""
            ElementTree.SubElement(case, "skipped", message=row.word + value)
    counted = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for kind, tag in counted.items():
        suite.set(kind, str(len(list(suite.iter(tag)))))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
