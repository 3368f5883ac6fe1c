"""What a row found: figures per server and run, goals met or missed, remarks. Plain values, ready for JSON."""

from dataclasses import asdict, dataclass, field
from statistics import median


@dataclass
class Goal:
    what: str
    value: float
    limit: float
    at_least: bool = True  # else: at most

    @property
    def met(self):
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def text(self):
        sign = "≥" if self.at_least else "≤"
        distance = self.value / self.limit - 1 if self.limit else 0
        verdict = "met" if self.met else "MISSED"
        return f"{self.what}: {self.value:.3g} (goal {sign} {self.limit:g}): {verdict}, {distance:+.0%}"


@dataclass
class Row:
    """`figures`: server -> its runs. A figure that one server lacks is absent, and a remark says why."""

    name: str
    unit: str
    higher_is_better: bool = True
    figures: dict = field(default_factory=dict)
    goals: list = field(default_factory=list)
    remarks: list = field(default_factory=list)
    details: dict = field(default_factory=dict)

    def add(self, server, value):
        self.figures.setdefault(server, []).append(value)

    def median(self, server):
        return median(self.figures[server])

    def spread(self, server):
        runs = self.figures[server]
        return (max(runs) - min(runs)) / median(runs) if median(runs) else 0.0

    def ratio(self, one, other):
        """Of medians; in the order of `higher_is_better`, 2.0 means twice as good."""
        return self.median(one) / self.median(other)

    def want(self, what, value, limit, at_least=True):
        self.goals.append(Goal(what, value, limit, at_least))

    def plain(self):
        goals = [{**asdict(goal), "met": goal.met} for goal in self.goals]
        medians = {server: self.median(server) for server in self.figures}
        return {**asdict(self), "goals": goals, "medians": medians}
