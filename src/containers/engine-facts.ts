import type { DockerApi } from "../kit/docker-api.ts";
import type { MissingPart, RuntimeDescription } from "../ports/runtime.ts";
import type { EngineFacts } from "./settings.ts";

interface EngineInfo {
  readonly DockerRootDir: string;
  readonly NCPU: number;
  readonly ServerVersion: string;
  readonly SecurityOptions: readonly string[] | null;
  readonly LiveRestoreEnabled: boolean;
  readonly MemoryLimit: boolean;
  readonly PidsLimit: boolean;
  readonly CpuCfsQuota: boolean;
  readonly Runtimes: Readonly<Record<string, unknown>> | null;
}

/** Reads the engine's version, limits and security options. */
export async function readEngineFacts(api: DockerApi): Promise<EngineFacts> {
  const info = await api.call<EngineInfo>({ path: "/info", timeoutMs: 10_000 });
  const securityOptions = (info.SecurityOptions ?? []).map((text) => /name=(\w+)/.exec(text)?.[1] ?? text);
  // With user namespaces the engine's data folder ends with the mapped ids: <data-root>/<uid>.<gid>.
  const remapped = /\/(\d+)\.\d+$/.exec(info.DockerRootDir);
  return {
    rootDir: info.DockerRootDir,
    processors: info.NCPU,
    version: info.ServerVersion,
    securityOptions,
    liveRestore: info.LiveRestoreEnabled,
    limits: { memory: info.MemoryLimit, processes: info.PidsLimit, cpus: info.CpuCfsQuota },
    ociRuntimes: Object.keys(info.Runtimes ?? {}),
    firstUid: securityOptions.includes("userns") && remapped ? Number(remapped[1]) : 0,
  };
}

/** Returns whether the engine has this OCI runtime. One with a dot names a shim, which Docker 23 and later find without listing it. */
export function offersOciRuntime({ ociRuntimes, version }: EngineFacts, name: string): boolean {
  const findsShims = Number.parseInt(version, 10) >= 23;
  return ociRuntimes.includes(name) || (findsShims && /^[^./][^/]*\.[^/]*$/.test(name));
}

/** Isolation that every container gets on every engine. */
const always = [
  "namespaces",
  "project_user",
  "no_capabilities",
  "no_new_privileges",
  "read_only_root",
  "network_namespace",
  "metadata_closed",
  "private_networks_closed",
];

/** Describes how containers are isolated. An engine that does not answer is reported as a missing part with its remedy, not as an error. */
export function describeEngine(
  engine: EngineFacts | Error,
  host: { readonly hasLayers: boolean; readonly socketPath: string; readonly ociRuntime: string | null },
): RuntimeDescription {
  if (engine instanceof Error) {
    const missing = [missingEngine(host.socketPath, engine)];
    return { name: "docker", network: "engine", isolation: always, missing };
  }
  const holds: Readonly<Record<string, boolean>> = {
    seccomp: engine.securityOptions.includes("seccomp"),
    private_app_folder: host.hasLayers,
    memory_limit: engine.limits.memory,
    process_limit: engine.limits.processes,
    cpu_limit: engine.limits.cpus,
    live_restore: engine.liveRestore,
  };
  const parts = Object.entries(holds);
  const hasRuntime = host.ociRuntime === null || offersOciRuntime(engine, host.ociRuntime);
  const withUsers = engine.firstUid > 0 ? ["user_namespace"] : [];
  return {
    name: "docker",
    network: "engine",
    isolation: [...always, ...withUsers, ...parts.flatMap(([part, works]) => (works ? [part] : []))],
    missing: [
      ...(hasRuntime ? [] : [missingOciRuntime(host.ociRuntime as string, engine)]),
      ...parts.flatMap(([part, works]) => (works ? [] : [explain(part)])),
    ],
  };
}

function missingEngine(socketPath: string, error: Error): MissingPart {
  return {
    part: "engine",
    effect: "The Docker engine does not answer: nothing can be built or started. Running containers go on.",
    remedy: `Start it (\`systemctl start docker\`), or name its socket with BERTH_DOCKER_SOCKET; it is ${socketPath} now (${error.message})`,
  };
}

function missingOciRuntime(name: string, { ociRuntimes }: EngineFacts): MissingPart {
  return {
    part: "oci_runtime",
    effect: `The Docker engine has no runtime ${name} (BERTH_DOCKER_RUNTIME): no application starts.`,
    remedy: `Add it to "runtimes" in /etc/docker/daemon.json, restart the engine and Berth, or set BERTH_DOCKER_RUNTIME to one of ${ociRuntimes.join(", ")}`,
  };
}

const explanations: Readonly<Record<string, Omit<MissingPart, "part">>> = {
  seccomp: {
    effect: "Applications may make every system call that their user may make.",
    remedy: "Use a kernel with CONFIG_SECCOMP_FILTER and an engine without `--security-opt seccomp=unconfined`",
  },
  private_app_folder: {
    effect: "Applications cannot write to their own folder, only to $STORAGE_DIR, /tmp and their home.",
    remedy: "Install e2fsprogs (mkfs.ext4) and start Berth again",
  },
  memory_limit: {
    effect: "An application may use all memory of this machine.",
    remedy: "Turn on the kernel's memory control group: `cgroup_enable=memory` on its command line",
  },
  process_limit: {
    effect: "An application may start as many processes as this machine can.",
    remedy: "Use a kernel with the pids control group",
  },
  cpu_limit: { effect: "An application may use all processors.", remedy: "Use a kernel with CONFIG_CFS_BANDWIDTH" },
  live_restore: {
    effect: "A restart of the Docker engine ends all applications, which then start again.",
    remedy: 'Put `"live-restore": true` into /etc/docker/daemon.json and run `systemctl reload docker`',
  },
};

const explain = (part: string): MissingPart => ({ part, ...(explanations[part] as Omit<MissingPart, "part">) });
