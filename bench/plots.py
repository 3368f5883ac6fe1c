"""One picture per unit: every server's median as a bar, its runs as dots. Needs Debian's python3-matplotlib."""

import matplotlib

matplotlib.use("svg")  # no screen

import matplotlib.pyplot as plt  # noqa: E402  after the choice above

COLOURS = {"nezha": "#2a6fdb", "bare": "#999999", "relay": "#bbbbbb", "direct": "#cccccc"}
OTHERS = "#d9a066"


def draw(target, about, rows):
    """Writes one SVG per unit into `target`; returns their names."""
    names = []
    for unit in dict.fromkeys(row.unit for row in rows):
        group = [row for row in rows if row.unit == unit]
        figure, axes = plt.subplots(1, len(group), figsize=(3.6 * len(group) + 1, 3.4), squeeze=False)
        for row, axis in zip(group, axes[0]):
            _bars(axis, row)
        figure.suptitle(f"{unit}  ·  {about['cpu']}, Linux {about['kernel']}", fontsize=9)
        figure.tight_layout()
        names.append(unit.replace(" ", "-").replace("/", "-per-") + ".svg")
        figure.savefig(target / names[-1])
        plt.close(figure)
    return names


def _bars(axis, row):
    servers = sorted(row.figures, key=row.median, reverse=not row.higher_is_better)
    medians = [row.median(server) for server in servers]
    axis.barh(servers, medians, color=[COLOURS.get(server, OTHERS) for server in servers])
    for place, server in enumerate(servers):
        runs = row.figures[server]
        axis.plot(runs, [place] * len(runs), ".", color="black", markersize=3)
    axis.set_title(row.name + ("" if row.higher_is_better else " (less is better)"), fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(axis="x", alpha=0.3)
