"""The report: one markdown file with every table, the goals first; JSON; one plot per unit."""

import json

import plots


def section(row):
    """A row as a table: medians, their spread over the runs, and every server against nezha's own figure."""
    if not row.figures:
        return f"### {row.name}\n\nSkipped. {' '.join(row.remarks)}\n"
    lines = [f"### {row.name}", "", f"| server | {row.unit} | spread | nezha is |", "| --- | ---: | ---: | ---: |"]
    for server in sorted(row.figures, key=row.median, reverse=row.higher_is_better):
        against = ""
        if server != "nezha" and "nezha" in row.figures and row.median(server):
            against = f"{row.ratio('nezha', server):.2f}×"
        lines.append(f"| {server} | {row.median(server):,.4g} | {row.spread(server):.0%} | {against} |")
    lines += [""] + [f"- {goal.text()}" for goal in row.goals] + [f"- {remark}" for remark in row.remarks]
    return "\n".join(lines) + "\n"


def goals(rows):
    lines = ["| row | what | goal | found | |", "| --- | --- | ---: | ---: | --- |"]
    for row in rows:
        for goal in row.goals:
            sign = "≥" if goal.at_least else "≤"
            distance = f"{goal.value / goal.limit - 1:+.0%}" if goal.limit else ""
            verdict = "met" if goal.met else "**missed**"
            found = f"{goal.value:.3g} | {verdict} {distance}"
            lines.append(f"| {row.name} | {goal.what} | {sign} {goal.limit:g} | {found} |")
    return "\n".join(lines) + "\n"


def heading(about, runs):
    return f"""# Nezha, side by side

{about["cpu"]}, {about["cores"]} cores, {about["memory_gib"]} GiB, Linux {about["kernel"]},
TCP {about["congestion_control"]},
in a virtual machine: {about["hypervisor"]}, load at start {about["load_at_start"]:.2f}.
{", ".join(about["programs"].values())}.

Medians of {runs} runs that the servers took in turns; the server on one core, the load on the other; CPU as the kernel
accounts it to the server's processes. Between machines compare ratios, not figures.
"""


def write(target, about, runs, rows):
    parts = [heading(about, runs), "## Goals\n", goals(rows), "## Rows\n", *(section(row) for row in rows)]
    parts += [f"![{name}]({name})\n" for name in plots.draw(target, about, [row for row in rows if row.figures])]
    (target / "report.md").write_text("\n".join(parts), encoding="utf-8")
    found = {"machine": about, "runs": runs, "rows": [row.plain() for row in rows]}
    (target / "results.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
