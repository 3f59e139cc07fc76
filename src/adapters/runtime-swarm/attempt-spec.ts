import { readFileSync } from "node:fs";
import { memoryFolderBytes, type AppBody } from "../../containers/container-bodies.ts";
import { labels } from "../../containers/settings.ts";

/** A swarm config that the swarm delivers to a task's machine as a file. */
export interface SwarmFile {
  readonly id: string;
  readonly name: string;
  readonly target: string;
  /** Default 0o444. */
  readonly mode?: number;
}

export interface AttemptPlan {
  readonly name: string;
  /** Its name in the registry, by digest. */
  readonly image: string;
  readonly files: readonly SwarmFile[];
  readonly network: string;
  readonly nameServers: readonly string[];
  readonly machine: string;
  /** The port that the application listens on; null if it accepts no connections. */
  readonly port: number | null;
  readonly labels: Readonly<Record<string, string>>;
}

/** Builds a service with one task, an attempt of a replica, isolated as a container is. Only Berth starts another attempt, never the swarm. */
export function attemptSpec(body: AppBody, plan: AttemptPlan): object {
  const { HostConfig: host } = body;
  return {
    Name: plan.name,
    Labels: plan.labels,
    TaskTemplate: {
      ContainerSpec: {
        Image: plan.image,
        // Omits the labels by which the Docker runtime finds its own containers.
        Labels: labels.check in plan.labels ? { [labels.check]: plan.labels[labels.check] } : {},
        ...commandOf(body),
        Env: [...body.Env, "TINI_KILL_PROCESS_GROUP=1"],
        Dir: body.WorkingDir,
        User: body.User,
        ...("GroupAdd" in host ? { Groups: host.GroupAdd } : {}),
        Hostname: "app",
        Init: host.Init,
        ReadOnly: host.ReadonlyRootfs,
        CapabilityDrop: host.CapDrop,
        Privileges: { NoNewPrivileges: host.SecurityOpt.includes("no-new-privileges") },
        Ulimits: host.Ulimits,
        Healthcheck: body.Healthcheck,
        StopGracePeriod: stopGraceMs * 1e6,
        DNSConfig: { Nameservers: plan.nameServers },
        Mounts: Object.keys(host.Tmpfs).map(memoryMount),
        Configs: plan.files.map(fileReference),
      },
      Resources: { Limits: { NanoCPUs: host.NanoCpus, MemoryBytes: host.Memory, Pids: host.PidsLimit } },
      RestartPolicy: { Condition: "none" },
      Placement: { Constraints: [`node.id==${plan.machine}`] },
      LogDriver: { Name: host.LogConfig.Type, Options: host.LogConfig.Config },
      Networks: [{ Target: plan.network }],
    },
    Mode: { Replicated: { Replicas: 1 } },
    EndpointSpec: {
      Mode: "dnsrr",
      Ports: plan.port === null ? [] : [{ Protocol: "tcp", TargetPort: plan.port, PublishMode: "host" }],
    },
  };
}

/**
 * TINI_KILL_PROCESS_GROUP sends SIGTERM to the whole process group, so that it reaches an application behind a shell. The shell traps it
 * and lives on until the application has exited; child processes do not inherit the trap.
 */
function commandOf(body: AppBody): object {
  if (!("Cmd" in body)) return {};
  return { Command: body.Entrypoint, Args: body.Cmd.map((line) => `trap : TERM\n${line}`) };
}

// A swarm cannot set the owner of a tmpfs, so everyone in the container may write to it; only the application runs there.
function memoryMount(path: string): object {
  return { Type: "tmpfs", Target: path, TmpfsOptions: { SizeBytes: memoryFolderBytes, Mode: 0o1777 } };
}

export function fileReference({ id, name, target, mode = 0o444 }: SwarmFile): object {
  return { ConfigID: id, ConfigName: name, File: { Name: target, UID: "0", GID: "0", Mode: mode } };
}

/** Time between SIGTERM and SIGKILL; a swarm fixes it when the service is created. */
export const stopGraceMs = 10_000;

/** Reads the files of this machine that a container mounts, each with its path in the container. */
export const filesOf = (body: AppBody): readonly { readonly target: string; readonly content: Buffer }[] =>
  body.HostConfig.Mounts.map(({ Source, Target }) => ({ target: Target, content: readFileSync(Source) }));
