import { readFileSync } from "node:fs";
import { memoryFolderBytes, type AppBody } from "../../containers/container-bodies.ts";
import { labels } from "../../containers/container-labels.ts";

/** A file that a swarm brings to the machine of a task. */
export interface SwarmFile {
  readonly id: string;
  readonly name: string;
  readonly target: string;
  /** 292 is 0444. */
  readonly mode?: number;
}

export interface AttemptPlan {
  readonly name: string;
  /** In the registry, by digest. */
  readonly image: string;
  readonly files: readonly SwarmFile[];
  /** The id of the project's overlay network. */
  readonly network: string;
  readonly nameServers: readonly string[];
  /** The machine's id. */
  readonly machine: string;
  /** The port that the application listens on; null: nothing reaches it. */
  readonly port: number | null;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * A service of one task, which is one attempt of a replica. What isolates it is translated from the body of a container, so that both have
 * the same. The swarm never starts another task: what ended is started again by Berth alone.
 */
export function attemptSpec(body: AppBody, plan: AttemptPlan): object {
  const { HostConfig: host } = body;
  return {
    Name: plan.name,
    Labels: plan.labels,
    TaskTemplate: {
      ContainerSpec: {
        Image: plan.image,
        // Not those by which the engine of a machine finds containers of its own.
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
 * SIGTERM goes to the whole process group, so that it reaches the application behind a shell. A shell that traps it lives on until the
 * application has ended; what it starts does not inherit the trap.
 */
function commandOf(body: AppBody): object {
  if (!("Cmd" in body)) return {};
  return { Command: body.Entrypoint, Args: body.Cmd.map((line) => `trap : TERM\n${line}`) };
}

// A swarm gives a file system in memory no owner, so everyone in the container may write there, which is the application alone.
function memoryMount(path: string): object {
  return { Type: "tmpfs", Target: path, TmpfsOptions: { SizeBytes: memoryFolderBytes, Mode: 0o1777 } };
}

export function fileReference({ id, name, target, mode = 0o444 }: SwarmFile): object {
  return { ConfigID: id, ConfigName: name, File: { Name: target, UID: "0", GID: "0", Mode: mode } };
}

/** How long an application has to end after SIGTERM: a swarm is told when a replica is started. */
export const stopGraceMs = 10_000;

/** The files of this machine that a container gets, by where it finds them. */
export const filesOf = (body: AppBody): readonly { readonly target: string; readonly content: Buffer }[] =>
  body.HostConfig.Mounts.map(({ Source, Target }) => ({ target: Target, content: readFileSync(Source) }));
