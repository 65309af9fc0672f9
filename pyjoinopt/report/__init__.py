"""Reports of what was done and why, and how they are rendered.

* `report_data`: `ReportData`, the data of a report, with `to_dict` and `from_dict`. Its parts: `model` (relations,
  joins, groups), `executed_run` (what a run counted), `advice` (how to remove a refusal or improve an estimate),
  `reason_keys` (short keys of the reasons of refusals).
* `render/`: text, trees, HTML, SVG, Mermaid and DOT out of `ReportData`.
* `join_report`: the public `JoinReport`, which adds the renderings, deferred sections and true rows.
* `rule_trace`: the steps of `pyjoinopt.rules.trace`.
"""
