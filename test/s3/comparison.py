"""How two results are told apart: what differs, each by its place."""


def differences(direct, cached, place="result"):
    """["place: directly …, through the cache …"]; empty when both are the same."""
    if isinstance(direct, dict) and isinstance(cached, dict):
        return [
            line
            for name in sorted(direct.keys() | cached.keys())
            for line in differences(direct.get(name, "nothing"), cached.get(name, "nothing"), f"{place}.{name}")
        ]
    return [] if direct == cached else [f"{place}: directly {direct!r}, through the cache {cached!r}"]
