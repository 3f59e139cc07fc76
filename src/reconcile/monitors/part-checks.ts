import { connect } from "node:net";
import { platformBackups } from "../../features/platform/platform.ts";
import {
  lastRouteVersion,
  lateNotifications,
  machineAges,
  ownDatabase,
  type Finding,
} from "../../features/status/status.ts";
import { counted } from "../../kit/bytes-text.ts";
import type { PooledMachine } from "../../ports/machines.ts";
import type { TaskStatus } from "../driver.ts";
import type { Platform } from "../platform.ts";
import { listed, overall, type Check } from "./check.ts";
import {
  edgeIsSilent,
  evaluateControlPlanes,
  evaluateEdge,
  evaluateIsolation,
  evaluateNotifications,
  evaluateOwnDatabase,
  evaluatePlatformBackups,
  evaluateScheduler,
  evaluateTasks,
} from "./evaluate-parts.ts";

/** Information that only the process itself has. */
export interface Probes {
  /** The roles of this process; checks that belong to a role run only if it has that role. */
  readonly roles: readonly string[];
  /** This control plane's own tasks. */
  readonly tasks: () => readonly TaskStatus[];
  /** The address of git over SSH, or why it stays closed; null until it listens. */
  readonly git: () => { readonly host: string; readonly port: number } | string | null;
}

const minuteMs = 60_000;
const patience = { warnMs: 5 * minuteMs, failMs: 30_000 };

export function partChecks(platform: Platform, probes: Probes): readonly Check[] {
  const { db } = platform;
  const has = (role: string) => probes.roles.includes(role);
  return [
    ownDatabaseCheck(platform),
    ...(has("edge") ? [edgeCheck(platform)] : []),
    ...(has("git")
      ? [gitCheck(probes), isolationCheck(platform), ...backupChecks(platform), ...poolChecks(platform)]
      : []),
    tasksCheck(probes),
    ...(has("reconcile") ? [schedulerCheck(probes)] : []),
    {
      name: "notifications",
      scope: "shared",
      patience,
      look: async () => evaluateNotifications(await lateNotifications(db)),
    },
    {
      name: "control_planes",
      scope: "shared",
      patience: { warnMs: null, failMs: 0 },
      look: async () => evaluateControlPlanes(await machineAges(db)),
    },
  ];
}

function isolationCheck({ ports }: Platform): Check {
  return {
    name: "isolation",
    scope: "machine",
    everyMs: minuteMs,
    // Never alerts: missing isolation was already reported at the start.
    patience: { warnMs: null, failMs: null },
    look: async () => evaluateIsolation((await ports.runtime.describe()).missing),
  };
}

/** Without a window, nobody expects a backup each day. */
function backupChecks({ db, clock, settings }: Platform): readonly Check[] {
  if (settings.backups.window === null) return [];
  const look = async () => [
    evaluatePlatformBackups(await platformBackups(db), clock.now(), settings.monitors.backupAgeMs),
  ];
  return [{ name: "platform_backups", scope: "shared", patience, everyMs: minuteMs, look }];
}

/** Only a runtime with several machines has a pool of them. */
function poolChecks({ log, ports: { runtime } }: Platform): readonly Check[] {
  const { machines } = runtime;
  if (machines === undefined) return [];
  const look = async () => {
    try {
      return evaluatePool(await machines.list());
    } catch (error) {
      log.warn({ err: error }, "the swarm does not respond");
      const hint =
        "`docker node ls` on the primary's machine shows why. More than half of the managers must be reachable.";
      return [
        overall("fail", "The swarm does not respond: running replicas keep running, but none can start or move.", hint),
      ];
    }
  };
  return [{ name: "machines", scope: "shared", patience, look }];
}

function ownDatabaseCheck({ db, wakeups }: Platform): Check {
  return {
    name: "control_database",
    scope: "machine",
    patience,
    async look() {
      const before = performance.now();
      const { connections, most } = await ownDatabase(db);
      const answeredInMs = performance.now() - before;
      return [evaluateOwnDatabase({ answeredInMs, connections, most, isListening: wakeups.isListening() })];
    },
  };
}

/** Compares the edge with the route version of the previous check, which it must have reached by now. */
function edgeCheck({ db, ports }: Platform): Check {
  let before: number | null = null;
  return {
    name: "edge",
    scope: "machine",
    patience,
    timeoutMs: 5000,
    tooLong: edgeIsSilent,
    async look() {
      const drawn = await lastRouteVersion(db);
      const finding = evaluateEdge(await ports.edge.observe(), before);
      before = drawn;
      return [finding];
    },
  };
}

function gitCheck(probes: Probes): Check {
  return {
    name: "git",
    scope: "machine",
    patience,
    async look() {
      const address = probes.git();
      if (typeof address === "string") return [overall("fail", address)];
      if (address === null)
        return [overall("fail", "git over SSH is not open.", "The control plane's log has the reason.")];
      if (await greetsAsSsh(address)) return [overall("ok", `git over SSH responds on port ${address.port}.`)];
      const hint = "Restart the control plane; its log has the reason.";
      return [overall("fail", "git over SSH does not respond, so pushes over SSH fail.", hint)];
    },
  };
}

function tasksCheck({ tasks }: Probes): Check {
  const startedAt = performance.now();
  return {
    name: "reconcilers",
    scope: "machine",
    patience,
    look: async () => evaluateTasks(others(tasks()), new Date(), performance.now() - startedAt),
  };
}

function schedulerCheck({ tasks }: Probes): Check {
  const startedAt = performance.now();
  const scheduler = () => tasks().find(({ name }) => name === "cron");
  return {
    name: "scheduler",
    scope: "machine",
    patience,
    look: async () => [evaluateScheduler(scheduler(), new Date(), performance.now() - startedAt)],
  };
}

// Leaves out the monitors task: it is running this check, so its current run has not ended.
function others(tasks: readonly TaskStatus[]): readonly TaskStatus[] {
  return tasks.filter(({ name }) => name !== "monitors");
}

const greetingMs = 5000;

/** Resolves to whether a server at the address sends an SSH identification first, as RFC 4253 requires. */
function greetsAsSsh(address: { readonly host: string; readonly port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address);
    const end = (greets: boolean) => {
      socket.destroy();
      resolve(greets);
    };
    socket.setTimeout(greetingMs, () => end(false));
    socket.once("data", (chunk) => end(chunk.toString("latin1").startsWith("SSH-2.0-")));
    socket.once("error", () => end(false)).once("close", () => end(false));
  });
}

type Machine = Pick<PooledMachine, "name" | "address" | "state" | "takes_replicas" | "guarded" | "replicas">;

/** Evaluates the machines that replicas run on. A drained machine is not a problem: its operator wants it so. */
export function evaluatePool(machines: readonly Machine[]): readonly Finding[] {
  const bad = machines.flatMap((machine): Finding[] => {
    const trouble = troubleOf(machine);
    // Machine names may repeat, so the subject includes the address.
    return trouble === null ? [] : [{ subject: `${machine.name} (${machine.address})`, ...trouble }];
  });
  const fit = machines.filter((machine) => machine.takes_replicas && troubleOf(machine) === null).length;
  if (fit === 0) {
    const hint =
      "`berth machines` shows why. `berth machines use` takes a drained machine back, `berth machines join` adds another.";
    return [overall("fail", "No machine takes replicas, so no replica can start.", hint), ...bad];
  }
  const drained = machines.length - fit - bad.length;
  const ok = `${counted(fit, "machine")} can take replicas${drained > 0 ? `, ${drained} drained` : ""}.`;
  return listed(bad, { ok, bad: "Machines that take no replicas" });
}

function troubleOf({ state, replicas, guarded, takes_replicas }: Machine): Omit<Finding, "subject"> | null {
  if (state === "down")
    return {
      status: "fail",
      detail: `The machine is down: its Docker engine does not respond to the swarm. Its replicas that do not respond start on other machines; ${replicas} are still counted here.`,
      hint: "Start the machine and its engine again, or remove it with `berth machines remove` if it is lost for good.",
    };
  if (state !== "ready")
    return {
      status: "warn",
      detail: `The swarm reports the machine as ${state}. It gets no new replicas; running ones stay.`,
      hint: "This ends once the managers have elected a leader; if it lasts, read the Docker engine's log on the machine.",
    };
  if (guarded || !takes_replicas) return null;
  return {
    status: "warn",
    detail: "The guard (Berth's firewall service) does not run on this machine, so it gets no replicas.",
    hint: "Install nftables on the machine; `docker service ps` of the service whose name ends in -guard shows the error.",
  };
}
