# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes would make of a manifest: checked by the strict schemas of its API, and as the pods that it would
start, each with its command, environment and names. A program for the Python of tools/install_kubernetes.sh, which prints
the pods as JSON; the test that runs it needs Python's own library alone.

    kubernetes_manifest.py MANIFEST SCHEMA_OF_TFJOB VERSION..."""
import copy
import json
import re
import sys


def expand(text, variables):
    """$(NAME) of variables that are there, and $ for $$, as containers' commands and values are read."""
    def value(found):
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])
    return re.sub(r"\$\$|\$\(([^()$]*)\)", value, text)


def environment(container, secrets, given):
    """Each value may name the variables before it."""
    variables = {}
    for entry in container.get("env", []):
        if "value" in entry:
            variables[entry["name"]] = expand(entry["value"], variables)
        else:
            reference = entry["valueFrom"]["secretKeyRef"]
            variables[entry["name"]] = secrets[reference["name"]][reference["key"]]
    return {**variables, **given}


def pod(name, hosts, template, secrets, given):
    container, = template["spec"]["containers"]
    variables = environment(container, secrets, given)
    return {"name": name, "hosts": hosts, "environment": variables,
            "command": [expand(word, variables) for word in container["command"]],
            "ports": [port["containerPort"] for port in container["ports"]],
            "probes": [{how: container[kind][how] for how in ("tcpSocket", "grpc") if how in container[kind]}
                       for kind in ("startupProbe", "livenessProbe") if kind in container]}


def pods_of_job(job, services, secrets):
    """Indexed: each has a number, and the job's name with it as that of its host, within the subdomain if there is such a
    service without an address for these pods."""
    name, spec, template = job["metadata"]["name"], job["spec"], job["spec"]["template"]
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"], spec
    assert template["spec"]["restartPolicy"] == "OnFailure", template
    service = services[template["spec"]["subdomain"]]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"], service
    assert service["selector"].items() <= template["metadata"]["labels"].items(), (service, template)
    for index in range(spec["completions"]):
        host = f"{name}-{index}"
        assert len(host) <= 63, host
        yield pod(host, [f"{host}.{template['spec']['subdomain']}"], template, secrets, {"JOB_COMPLETION_INDEX": str(index)})


def pods_of_tfjob(job, secrets):
    """As the training operator starts them, with a service for each."""
    name, replicas = job["metadata"]["name"], job["spec"]["tfReplicaSpecs"]

    def host(role, index):
        return f"{name}-{role.lower()}-{index}.default.svc"

    cluster = {role.lower(): [host(role, i) + ":2222" for i in range(spec["replicas"])] for role, spec in replicas.items()}
    for role, spec in replicas.items():
        for index in range(spec["replicas"]):
            config = {"cluster": cluster, "task": {"type": role.lower(), "index": index}, "environment": "cloud"}
            yield pod(f"{name}-{role.lower()}-{index}", [host(role, index)], spec["template"], secrets,
                      {"TF_CONFIG": json.dumps(config)})


def check(document, versions, schema):
    import jsonschema
    import kubernetes_validate
    if document["kind"] == "TFJob":
        jsonschema.validate(document, schema)
        # What it says of pods is what a Job would.
        for spec in document["spec"]["tfReplicaSpecs"].values():
            template = copy.deepcopy(spec["template"])
            template["spec"]["restartPolicy"] = "Never"
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": document["metadata"], "spec": {"template": template}}
            check(job, versions, schema)
        return
    for version in versions:
        kubernetes_validate.validate(document, version, strict=True)


def main(manifest, schema, *versions):
    import yaml
    with open(manifest, encoding="utf-8") as file:
        documents = list(yaml.safe_load_all(file))
    with open(schema, encoding="utf-8") as file:
        schema = json.load(file)
    for document in documents:
        check(document, versions, schema)
    by_kind = {}
    for document in documents:
        by_kind.setdefault(document["kind"], {})[document["metadata"]["name"]] = document
    secrets = {name: secret["stringData"] for name, secret in by_kind.get("Secret", {}).items()}
    services = {name: service["spec"] for name, service in by_kind.get("Service", {}).items()}
    pods = []
    for job in by_kind.get("Job", {}).values():
        pods += pods_of_job(job, services, secrets)
    for job in by_kind.get("TFJob", {}).values():
        pods += pods_of_tfjob(job, secrets)
    json.dump({"documents": documents, "pods": pods}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
