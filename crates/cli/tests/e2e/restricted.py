"""Reports what the Pod Security Standard "restricted" forbids in manifests.

https://kubernetes.io/docs/concepts/security/pod-security-standards/, the columns baseline and
restricted, for pods of Linux.
"""

import sys

import yaml

VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}
PROFILES = {"RuntimeDefault", "Localhost"}
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
SELINUX_TYPES = {None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}


def context_violations(context):
    """What a security context of a pod or a container must not ask for."""
    if context.get("runAsUser") == 0:
        yield "runAsUser is root"
    if context.get("runAsNonRoot") is False:
        yield "runAsNonRoot is false"
    profile = context.get("seccompProfile")
    if profile is not None and profile.get("type") not in PROFILES:
        yield f"seccompProfile {profile.get('type')}"
    apparmor = context.get("appArmorProfile")
    if apparmor is not None and apparmor.get("type") not in PROFILES:
        yield f"appArmorProfile {apparmor.get('type')}"
    selinux = context.get("seLinuxOptions", {})
    if selinux.get("type") not in SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield "seLinuxOptions"
    if context.get("windowsOptions", {}).get("hostProcess"):
        yield "hostProcess"


def container_violations(container, pod_context):
    context = container.get("securityContext", {})
    yield from context_violations(context)
    if context.get("privileged"):
        yield "privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    capabilities = context.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield "capabilities do not drop ALL"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "capabilities are added"
    if context.get("procMount", "Default") != "Default":
        yield "procMount"
    if context.get("runAsNonRoot", pod_context.get("runAsNonRoot")) is not True:
        yield "runAsNonRoot is not true"
    if not context.get("seccompProfile", pod_context.get("seccompProfile")):
        yield "no seccompProfile"
    for port in container.get("ports", []):
        if port.get("hostPort"):
            yield "hostPort"


def pod_violations(spec):
    for word in ["hostNetwork", "hostPID", "hostIPC"]:
        if spec.get(word):
            yield word
    context = spec.get("securityContext", {})
    yield from context_violations(context)
    for sysctl in context.get("sysctls", []):
        if sysctl["name"] not in SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    for volume in spec.get("volumes", []):
        for kind in set(volume) - {"name"} - VOLUMES:
            yield f"volume {kind}"
    for kind in ["initContainers", "containers", "ephemeralContainers"]:
        for container in spec.get(kind, []):
            for violation in container_violations(container, context):
                yield f"{container['name']}: {violation}"


def pod_spec(resource):
    """The pod of a resource; None of one that has none."""
    spec = resource.get("spec", {})
    if resource["kind"] == "Pod":
        return spec
    if resource["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec.get("template", {}).get("spec")


def main():
    found = pods = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for resource in yaml.safe_load_all(file):
                spec = pod_spec(resource)
                if spec is None:
                    continue
                pods += 1
                for violation in pod_violations(spec):
                    print(f"{path}: {resource['kind']}: {violation}")
                    found += 1
    sys.exit(1 if found or pods == 0 else 0)


main()
