"""Fixtures of the tests with real S3 clients: one world with both servers and the cache for all of them."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import compatibility  # noqa: E402
from cache import Cache  # noqa: E402
from clients.process import CLIENTS, Client  # noqa: E402
from servers import BUCKET, Moto, Radosgw, Versitygw  # noqa: E402
from world import World  # noqa: E402


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items):
    """Marks what needs a heavy client or server. What looks for secrets in what the cache wrote comes at the end."""
    for item in items:
        client = getattr(item, "callspec", None) and item.callspec.params.get("client")
        server = getattr(item, "callspec", None) and item.callspec.params.get("server")
        if (client in CLIENTS and CLIENTS[client].heavy) or server == Radosgw.name:
            item.add_marker("heavy")
    items.sort(key=lambda item: item.get_closest_marker("after_all") is not None)


RESULTS = compatibility.wanted()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    row = getattr(item, "callspec", None) and item.callspec.params
    if RESULTS and report.when == "call" and row and {"server", "client", "name"} <= row.keys():
        refused = ("refused", True) in item.user_properties
        RESULTS.add(report, row["server"], row["client"], row["name"], refused)


@pytest.fixture(scope="session", autouse=RESULTS is not None)
def compatibility_document(servers, pairs):
    """Writes it at the end of a run that was asked for it."""
    yield
    versions = [pairs(name, "moto").direct.must("version") for name in RESULTS.clients()]
    RESULTS.write(versions, [server.version() for server in servers.values()])


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("s3"))
    yield world
    world.end()


@pytest.fixture(scope="session")
def servers(world, request):
    wanted = {item.callspec.params.get("server") for item in request.session.items if hasattr(item, "callspec")}
    kinds = [Moto, Versitygw, *([Radosgw] if Radosgw.name in wanted else [])]
    made = {kind.name: kind(world) for kind in kinds}
    world.names({name: server.twins[0].ip for server in made.values() for name in [*server.hosts, server.known_host]})
    return made


@pytest.fixture(scope="session")
def cache(world, servers):
    return Cache(world, servers.values())


class Pair:
    """The same client twice: one reaches the server directly, one through the cache."""

    def __init__(self, kind, world, server, credentials, bucket=BUCKET, **options):
        self.direct = Client(kind, world.direct, server.endpoint, bucket, credentials, **options)
        self.cached = Client(kind, world.cached, server.endpoint, bucket, credentials, **options)

    def ask(self, operation, **arguments):
        """(what the direct one got, what the other got); both work at the same time."""
        self.direct.begin(operation, **arguments)
        self.cached.begin(operation, **arguments)
        return self.direct.finish(), self.cached.finish()

    def end(self):
        self.direct.end()
        self.cached.end()


@pytest.fixture(scope="session")
def pairs(world, servers, cache):
    """pairs(client, server, credentials=owner, worker=0, style="path"): running pairs, made when first wanted."""
    made = {}

    def pair(client, server, credentials="owner", worker=0, **options):
        wanted = (client, server, credentials, worker, *sorted(options.items()))
        if wanted not in made:
            target = servers[server]
            keys = None if credentials == "nobody" else getattr(target, credentials)
            made[wanted] = Pair(CLIENTS[client], world, target, keys, **options)
        return made[wanted]

    yield pair
    for one in made.values():
        one.end()


@pytest.fixture(scope="session")
def owners(servers):
    """owners[server]: boto3 at each twin's own address, which the cache does not see."""
    made = {name: [twin.client(server.owner) for twin in server.twins] for name, server in servers.items()}
    yield made
    for pair in made.values():
        for client in pair:
            client.end()


@pytest.fixture
def put(owners):
    """put(server, key, size, …): the same object at both twins, behind the cache's back."""

    def write(server, key, size, **options):
        for owner in owners[server]:
            owner.must("write", key=key, size=size, **options)

    return write
