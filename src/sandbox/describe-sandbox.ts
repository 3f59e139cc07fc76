import type { ContainmentFindings } from "./probe-containment.ts";
import type { NetworkFindings } from "./probe-network.ts";
import type { MissingSandboxPart, SandboxDescription } from "./spec.ts";

/** Says which parts of the full isolation hold here and, for each that does not, what follows and what to do. */
export function describeSandbox(
  containment: ContainmentFindings,
  network: NetworkFindings,
  groupParts: readonly string[],
): SandboxDescription {
  const holds = {
    ...containmentParts(containment),
    ...limitParts(groupParts),
    network_namespace: network.driver.mode !== "shared",
    metadata_closed: network.driver.closesMetadata,
  };
  const because = (reason: string) => (reason === "" ? "" : ` (${reason})`);
  const reasons: Readonly<Record<string, string>> = {
    mount_namespace: because(containment.reason),
    user_namespace: because(containment.reason),
    network_namespace: because(network.reason),
    metadata_closed: because(network.reason),
  };
  const isolation = Object.entries(holds).flatMap(([part, works]) => (works ? [part] : []));
  const missing = Object.entries(holds).flatMap(([part, works]) =>
    works ? [] : [{ ...explain(part, containment.isRoot), part }],
  );
  const explained = missing.map((part) => ({ ...part, remedy: part.remedy + (reasons[part.part] ?? "") }));
  return { network: network.driver.mode, isolation, missing: [...explained, ...guessed(network)] };
}

function containmentParts({ found }: ContainmentFindings): Record<string, boolean> {
  const { level } = found;
  const mounts = level === "staged" || level === "own_user" || level === "privileged";
  return {
    mount_namespace: mounts,
    user_namespace: level === "staged" || level === "own_user",
    pid_namespace: found.pid,
    seccomp: found.seccomp,
    project_user: level === "staged" || level === "privileged" || level === "switched",
  };
}

function limitParts(parts: readonly string[]): Record<string, boolean> {
  return {
    memory_limit: parts.includes("memory_limit"),
    process_limit: parts.includes("process_limit"),
    cpu_limit: parts.includes("cpu_limit"),
  };
}

type Explanation = Omit<MissingSandboxPart, "part">;

const asRoot = "Run Berth as root on the machine itself";
const bubblewrap =
  "Install bubblewrap 0.5 or newer and allow user namespaces: `apt-get install bubblewrap`, `sysctl user.max_user_namespaces=10000`, " +
  "and on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`. In a container, grant CAP_SYS_ADMIN";

const explanations: Readonly<Record<string, Explanation>> = {
  mount_namespace: {
    effect: "Applications see this machine's files as far as their user may read them.",
    remedy: bubblewrap,
  },
  user_namespace: {
    effect: "Applications may try system calls that only a user namespace's owner needs.",
    remedy: bubblewrap,
  },
  pid_namespace: {
    effect: "Applications see which other processes run here.",
    remedy: "In a container, mount an unmasked /proc",
  },
  seccomp: {
    effect: "Applications may make every system call that their user may make.",
    remedy: "Use a kernel with seccomp filters, on x86-64 or arm64",
  },
  memory_limit: {
    effect:
      "Berth looks at an application's memory once a second and ends it when it is over its limit; a database may use all memory.",
    remedy: `${asRoot}, with control groups`,
  },
  process_limit: {
    effect: "The kernel's limit of processes for a user takes the place of a limit for the application.",
    remedy: `${asRoot}, with control groups`,
  },
  cpu_limit: {
    effect: "An application or a database may use all processors.",
    remedy: `${asRoot}, with control groups`,
  },
  network_namespace: {
    effect:
      "Applications share this machine's network: they reach services on 127.0.0.1 and each other, and what they listen on is open to other machines unless a firewall shuts it.",
    remedy: "Install iproute2 and nftables and run Berth as root, or install passt and let this user open /dev/net/tun",
  },
  metadata_closed: {
    effect:
      "Applications reach this machine's metadata service, if its cloud has one, and thereby what the machine's cloud role may do.",
    remedy: "Give applications a network of their own, with iproute2 installed; or take the role from the machine",
  },
};

function explain(part: string, isRoot: boolean): Explanation {
  if (part !== "project_user") return explanations[part] as Explanation;
  const effect = isRoot
    ? "Applications run as root's user, although without its rights where they have a user namespace."
    : "All applications run as the user who started Berth.";
  return {
    effect,
    remedy: isRoot
      ? "In a container, grant CAP_SYS_ADMIN; install util-linux (setpriv) and keep BERTH_DATA outside /root"
      : asRoot,
  };
}

function guessed({ driver, guessedResolvers }: NetworkFindings): MissingSandboxPart[] {
  if (driver.mode === "shared" || !guessedResolvers) return [];
  const effect =
    "This machine's name servers listen on its loopback, which applications do not reach; they ask 1.1.1.1 and 8.8.8.8.";
  return [{ part: "name_servers", effect, remedy: "Name a server in /etc/resolv.conf that is not on 127.0.0.0/8" }];
}
