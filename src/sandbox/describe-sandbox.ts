import type { ContainmentFindings } from "./probe-containment.ts";
import type { NetworkFindings } from "./probe-network.ts";
import type { MissingSandboxPart, SandboxDescription } from "./spec.ts";

export interface SandboxFindings {
  readonly containment: ContainmentFindings;
  readonly network: NetworkFindings;
  /** The limits that control groups enforce on this machine. */
  readonly groupParts: readonly string[];
  /** Whether Berth has a system call filter for this processor. */
  readonly hasFilter: boolean;
}

/** Lists the parts of full isolation that work on this machine and, for each missing part, the consequence and the remedy. */
export function describeSandbox(findings: SandboxFindings): SandboxDescription {
  const { containment, network, groupParts } = findings;
  const { level, switchesUser, layer } = containment.found;
  const isIsolated = level === "isolated";
  const holds = {
    namespaces: isIsolated,
    seccomp: isIsolated && findings.hasFilter,
    project_user: switchesUser,
    private_app_folder: !isIsolated || layer !== null,
    memory_limit: groupParts.includes("memory_limit"),
    process_limit: groupParts.includes("process_limit"),
    cpu_limit: groupParts.includes("cpu_limit"),
    network_namespace: network.driver.mode !== "shared",
    metadata_closed: network.driver.closesMetadata,
    private_networks_closed: network.driver.closesMetadata,
  };
  const parts = Object.entries(holds);
  const isolation = parts.flatMap(([part, works]) => (works ? [part] : []));
  const missing = parts.flatMap(([part, works]) => (works ? [] : [explain(part, findings)]));
  return { network: network.driver.mode, isolation, missing: [...missing, ...guessed(network)] };
}

type Explanation = Omit<MissingSandboxPart, "part">;

const asRoot = "Run Berth as root on the machine itself";
const withGroups =
  `${asRoot}; or, as this user, on a machine with systemd: ` +
  "`systemd-run --user --scope -p Delegate=yes npm start`, or `bin/berthd service install`";

const explanations: Readonly<Record<string, Explanation>> = {
  namespaces: {
    effect:
      "Applications and builds see this machine's processes, and its files as far as their user may read them. Berth runs the code of the first organization only.",
    remedy:
      "Install bubblewrap 0.5 or newer and allow user namespaces: `apt-get install bubblewrap`, `sysctl user.max_user_namespaces=10000`, " +
      "and on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`. In a container, grant CAP_SYS_ADMIN and mount an unmasked /proc; " +
      "or set BERTH_ALLOW_UNISOLATED=1 to run the code of every organization without isolation",
  },
  seccomp: {
    effect: "Applications may make every system call that their user may make.",
    remedy: "Use user namespaces, on x86-64 or arm64",
  },
  private_app_folder: {
    effect: "Applications cannot write to their own folder, only to $STORAGE_DIR, /tmp and their home.",
    remedy: "Use Linux 5.11 or newer with the module overlay: `modprobe overlay`",
  },
  memory_limit: {
    effect:
      "Berth measures an application's memory once a second and ends it when it is over its limit; a database may use all memory.",
    remedy: withGroups,
  },
  process_limit: {
    effect: "The kernel's limit of processes for a user takes the place of a limit for the application.",
    remedy: withGroups,
  },
  cpu_limit: {
    effect: "An application or a database may use all processors.",
    remedy: withGroups,
  },
  network_namespace: {
    effect:
      "Applications share this machine's network: they reach services on 127.0.0.1 and each other, and what they listen on is open to other machines unless a firewall closes it.",
    remedy: "Install iproute2 and nftables and run Berth as root, or install passt and let this user open /dev/net/tun",
  },
  metadata_closed: {
    effect:
      "Applications reach this machine's metadata service, if its cloud has one, and thereby what the machine's cloud role may do.",
    remedy:
      "Give applications a network of their own, with iproute2 installed; or remove the cloud role from the machine",
  },
  private_networks_closed: {
    effect: "Applications and builds reach the hosts of private networks that this machine reaches.",
    remedy: "Give applications a network of their own, with iproute2 installed; or close these networks by a firewall",
  },
};

function explain(part: string, { containment, network }: SandboxFindings): MissingSandboxPart {
  const { effect, remedy } = part === "project_user" ? sameUser(containment) : (explanations[part] as Explanation);
  const reasons: Readonly<Record<string, string>> = {
    namespaces: containment.reason,
    private_app_folder: containment.reason,
    network_namespace: network.reason,
    metadata_closed: network.reason,
    private_networks_closed: network.reason,
  };
  // A program's error output may have many lines; the first names the cause.
  const reason = (reasons[part] ?? "").split("\n")[0] ?? "";
  return { part, effect, remedy: reason === "" ? remedy : `${remedy} (${reason})` };
}

function sameUser({ isRoot }: ContainmentFindings): Explanation {
  return isRoot
    ? {
        effect: "Applications run as root.",
        remedy: "Install util-linux (setpriv) and keep BERTH_DATA outside /root",
      }
    : { effect: "All applications run as the user who started Berth.", remedy: asRoot };
}

function guessed({ driver, guessedResolvers }: NetworkFindings): MissingSandboxPart[] {
  if (driver.mode === "shared" || !guessedResolvers) return [];
  const effect =
    "This machine's name servers listen on its loopback, which applications do not reach, so they use 1.1.1.1 and 8.8.8.8.";
  return [{ part: "name_servers", effect, remedy: "Name a server in /etc/resolv.conf that is not on 127.0.0.0/8" }];
}
