"""Files in `deploy`: that they fit together, and that commands in them exist."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from commands import check_command
from kilt.abstraction.buckets import AbstractionSpec
from kilt.abstraction.features import Deal
from kilt.config import read_config
from kilt.games import load_game
from kilt.solve.distributed.partition import head_rounds

ROOT = Path(__file__).parents[1]
KUBERNETES = ROOT / "deploy" / "kubernetes"
SCRIPTS = [*sorted((ROOT / "deploy").glob("[cr]*/*.sh")), ROOT / "deploy" / "slurm" / "kilt.sbatch"]
PAGES = sorted((ROOT / "docs" / "guides").glob("distributed*.md"))


@pytest.fixture(scope="module")
def kinds():
    """All that is applied, by kind and name."""
    said = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    assert {*said["resources"], "kustomization.yaml"} == {path.name for path in KUBERNETES.glob("*.yaml")}
    found = [one for name in said["resources"] for one in yaml.safe_load_all((KUBERNETES / name).read_text())]
    found += [{"kind": "ConfigMap", "metadata": one, "files": one["files"]} for one in said["configMapGenerator"]]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


@pytest.fixture(scope="module")
def pods(kinds):
    """The pods of head and blades."""
    return [kinds["Job", "kilt-head"]["spec"]["template"], kinds["StatefulSet", "kilt-blade"]["spec"]["template"]]


def test_volumes(kinds, pods):
    """Every volume that is mounted is there, and the one for runs is the same at the same place in all pods."""
    places = []
    for pod in pods:
        (container,), volumes = pod["spec"]["containers"], {one["name"]: one for one in pod["spec"]["volumes"]}
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        assert mounts.keys() == volumes.keys()
        if "config" in volumes:
            assert ("ConfigMap", volumes["config"]["configMap"]["name"]) in kinds
        claim = volumes["runs"]["persistentVolumeClaim"]["claimName"]
        assert kinds["PersistentVolumeClaim", claim]["spec"]["accessModes"] == ["ReadWriteMany"]
        environment = {one["name"]: one.get("value") for one in container["env"]}
        assert environment["RAY_AUTH_TOKEN_PATH"] == f"{mounts['token']}/token"
        places.append((claim, mounts["runs"], volumes["token"]["secret"]["secretName"], container["image"]))
    assert places[0] == places[1]
    page = (ROOT / "docs" / "guides" / "distributed-kubernetes.md").read_text()
    assert f"create secret generic {places[0][2]} --from-literal=token=" in page


def test_services_find_their_pods(kinds, pods):
    head, blade = pods
    for service, pod in (("kilt-head", head), ("kilt-blade", blade)):
        found = kinds["Service", service]["spec"]
        assert found["clusterIP"] == "None" and "type" not in found
        assert found["selector"].items() <= pod["metadata"]["labels"].items()
    (port,) = kinds["Service", "kilt-head"]["spec"]["ports"]
    (named,) = head["spec"]["containers"][0]["ports"]
    assert port["targetPort"] == named["name"] and port["port"] == named["containerPort"]
    assert f"--port {port['port']} " in head["spec"]["containers"][0]["args"][0]
    assert f"--address kilt-head:{port['port']} " in blade["spec"]["containers"][0]["args"][0]
    blades = kinds["StatefulSet", "kilt-blade"]["spec"]
    assert blades["serviceName"] == "kilt-blade"
    assert blades["selector"]["matchLabels"] == blade["metadata"]["labels"]
    policy = kinds["NetworkPolicy", "kilt"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= head["metadata"]["labels"].items()


def test_numbers_of_blades_and_cores(kinds, pods):
    """Where the same number is in several files, it is the same number."""
    assert {*kinds["ConfigMap", "kilt-config"]["files"]} == {path.name for path in KUBERNETES.glob("*.toml")}
    said = read_config(KUBERNETES / "solve.toml")
    head, blade = (pod["spec"]["containers"][0] for pod in pods)
    blades = kinds["StatefulSet", "kilt-blade"]["spec"]["replicas"]
    assert said.engine.name == "ray" and said.engine.blades == blades
    assert re.search(r'solve\.sh /runs/solve\.toml /runs/solve "\$POD_IP:6379" (\d+) ', head["args"][0])[1] == str(
        blades + 1
    )
    assert f"--num-cpus {said.solver.threads} " in blade["args"][0]
    assert blade["resources"]["requests"]["cpu"] == str(said.solver.threads)
    deal = Deal.from_game(load_game(said.game))
    plan = AbstractionSpec.from_name(said.cards[0], deal).plan
    assert head_rounds(plan, deal) == 1 and plan.public[0].classes >= blades


def test_image():
    """What is copied into the image is there, and what pods call is copied."""
    copied = [
        name
        for line in (KUBERNETES / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY")
        for name in line.split()[1:-1]
    ]
    assert all((ROOT / name).exists() for name in copied)
    assert {"deploy/cluster/node.sh", "deploy/cluster/solve.sh"} <= {*copied}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts(script):
    subprocess.run(["bash", "-n", script], check=True)
    assert script.suffix == ".sbatch" or script.stat().st_mode & 0o111
    for line in script.read_text().splitlines():
        if " kilt solve " in f" {line} " and "$" in line and not line.lstrip().startswith("#"):
            check_command(re.sub(r'"\$[@\w]+"|"\$\{.*?\}"', "1", line.removeprefix("exec ").removesuffix("&")))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_files_that_pages_name(page):
    for name in re.findall(r"deploy/[\w./-]*\w", page.read_text()):
        assert (ROOT / name).exists(), name
