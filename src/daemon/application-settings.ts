import { isIP } from "node:net";
import { totalmem } from "node:os";
import { choices, flag, list, optional, setting, shown, text, whole } from "./settings.ts";

/** Docker Hub's official images, by the kind of generated Dockerfile that starts from them. */
export const officialImages = {
  node: "node:24-bookworm-slim",
  python: "python:3.13-slim-bookworm",
  go: "golang:1.25-bookworm",
  rust: "rust:1-slim-bookworm",
  java: "maven:3-eclipse-temurin-21",
  ruby: "ruby:3.4-bookworm",
  php: "composer:2",
  plain: "debian:bookworm-slim",
} as const;

export type ParentImages = Readonly<Record<keyof typeof officialImages, string>>;

const defaultParents = Object.entries(officialImages)
  .map(([language, image]) => `\`${language}=${image}\``)
  .join(", ");

export const runtimeSettings = {
  runtimes: choices("BERTH_RUNTIME", ["process", "docker", "swarm"]).means(
    "What builds and runs applications: sandboxed processes, containers of a Docker engine on this machine, or the machines of a Docker Swarm. Several with commas, such as `process,swarm`: projects start in the first, and `berth platform runtime` moves them.",
  ),
  dockerSocket: text("BERTH_DOCKER_SOCKET", "/var/run/docker.sock").means("The unix socket of the Docker engine."),
  dockerRuntime: optional("BERTH_DOCKER_RUNTIME").means(
    "The Docker engine's OCI runtime for applications, such as `runsc` for gVisor; the engine's default when unset. Not with a swarm.",
  ),
  swarmRegistry: setting("BERTH_SWARM_REGISTRY", "", readRegistry).means(
    "The registry from which a swarm's machines pull images, such as `registry.example.com:5000/berth` or `user:password@registry.example.com/berth`; when unset, Berth runs one.",
  ),
  swarmRegistryPort: whole("BERTH_SWARM_REGISTRY_PORT", 5443, [1024, 65_535]).means(
    "The port of the registry that Berth runs, at the address of this machine in its swarm.",
  ),
  swarmEdges: list("BERTH_SWARM_EDGES", (value) => (isIP(value) === 4 ? undefined : "is not an IPv4 address")).means(
    "Addresses of edges on machines outside the swarm; replicas accept connections only from them and from the swarm's own machines.",
  ),
  swarmManagers: list("BERTH_SWARM_MANAGERS", (value) =>
    /^[a-z0-9][a-z0-9.-]*:\d{1,5}$/.test(value) ? undefined : "is not a host with a port",
  ).means(
    "Engines of other managers of the swarm, as host:port, that Berth calls while its own manager does not answer; needs BERTH_SWARM_CERTIFICATES.",
  ),
  swarmCertificates: optional("BERTH_SWARM_CERTIFICATES").means(
    "Folder with `ca.pem`, `cert.pem` and `key.pem`, by which Berth and the engines of BERTH_SWARM_MANAGERS authenticate each other.",
  ),
  parentImages: setting("BERTH_BASE_IMAGE", "", readParents).means(
    `The parent image of all generated Dockerfiles, with the tools of every language in use; after commas those of single languages, such as \`example/base:1,go=golang:1.26\`. Default: ${defaultParents}.`,
  ),
  sharedImages: list("BERTH_SHARED_IMAGES", (value) =>
    /^[\w./:@-]+$/.test(value) ? undefined : "is not a valid image name",
  ).means(
    "Images of the engine that Dockerfiles may start from, besides those parent images; all others come from registries.",
  ),
  privateRegistries: list("BERTH_PRIVATE_REGISTRIES", (value) =>
    /^[a-z0-9][a-z0-9.-]*(?::\d{1,5})?$/.test(value) ? undefined : "is not a host, or a host with a port",
  ).means(
    "Registries of images in private networks or on this machine that builds may reach, as host:port; 443 without a port.",
  ),
  sharesInstalls: flag("BERTH_SHARE_INSTALLS", true).means(
    "Let projects with the same packages share what npm installed. When off, no build can find out which packages other projects use.",
  ),
};

const mostMib = 1_073_741_824;

export const limitSettings = {
  appMemoryMib: whole("BERTH_APP_MEMORY_MIB", 512, [16, 1_048_576]).means("Memory of one replica."),
  appFolderMib: whole("BERTH_APP_FOLDER_MIB", 1024, [1, 1_048_576]).means(
    "How much one replica may change in the application's folder; the changes are lost when the replica ends.",
  ),
  appProcesses: whole("BERTH_APP_PROCESSES", 256, [8, 100_000]).means("Processes and threads of one replica."),
  appCpus: whole("BERTH_APP_CPUS", 2, [1, 1024]).means("Processors of one replica, and of one project's database."),
  databaseMemoryMib: whole("BERTH_DATABASE_MEMORY_MIB", 512, [64, 1_048_576]).means(
    "Memory of one project's database, including the files that it keeps in memory.",
  ),
  buildMemoryMib: {
    ...whole(
      "BERTH_BUILD_MEMORY_MIB",
      buildMemoryMibOf(totalmem(), process.constrainedMemory()),
      [64, 1_048_576],
    ).means(
      "Memory of one build. Default: half of the machine's memory, but at least 2048 and at most 8192. Node.js gets three quarters of it as its heap.",
    ),
    standard: "",
  },
  buildDiskMib: whole("BERTH_BUILD_DISK_MIB", 8192, [64, 1_048_576]).means(
    "Disk that one build may take while it runs: source, dependencies, temporary files and the project's build caches.",
  ),
  buildSeconds: whole("BERTH_BUILD_SECONDS", 900, [1, 86_400]).means(
    "How long a build may take, or a release command; for a third of it, a release command may print nothing, and a build may neither print nor compute anything.",
  ),
  concurrentBuilds: whole("BERTH_CONCURRENT_BUILDS", 2, [1, 64]).means("Builds at the same time."),
  treeMib: whole("BERTH_TREE_MIB", 1024, [1, 65_536]).means(
    "The size of all files of a pushed commit; the pack that git pushes may have a quarter of it, at most 1024.",
  ),
  healthBudgetSeconds: whole("BERTH_HEALTH_BUDGET_SECONDS", 60, [1, 3600]).means(
    "How long new replicas may take to become healthy.",
  ),
  drainSeconds: whole("BERTH_DRAIN_SECONDS", 30, [0, 3600]).means(
    "How long open requests to a replaced deployment may still run.",
  ),
  stopGraceSeconds: whole("BERTH_STOP_GRACE_SECONDS", 10, [0, 3600]).means(
    "How long a process may take to exit after SIGTERM before Berth kills it.",
  ),
  readsPerMinute: whole("BERTH_READS_PER_MINUTE", 600, [1, 1_000_000]).means("Read requests per token and minute."),
  writesPerMinute: whole("BERTH_WRITES_PER_MINUTE", 120, [1, 1_000_000]).means("Write requests per token and minute."),
  logLinesPerSecond: whole("BERTH_LOG_LINES_PER_SECOND", 1000, [1, 1_000_000]).means(
    "How many log lines of a replica are stored per second once its burst (the lines of 20 seconds) is used up; of more, the oldest unread ones are dropped and counted.",
  ),
  storageMib: whole("BERTH_STORAGE_MIB", 5120, [16, mostMib]).means(
    "How large the storage folder of a project may get; over this limit the folder is read-only for the application.",
  ),
  databaseDiskMib: whole("BERTH_DATABASE_DISK_MIB", 10_240, [64, mostMib]).means(
    "How much disk the database of a project may use; over this limit its role is read-only.",
  ),
  imagesMib: whole("BERTH_IMAGES_MIB", 5120, [64, mostMib]).means(
    "How much disk the repository, images and build caches of a project may use; over this limit Berth refuses new builds. One image may have four fifths of it.",
  ),
  backupsMib: whole("BERTH_BACKUPS_MIB", 20_480, [64, mostMib]).means(
    "How much disk the backups of a project may use; over this limit the oldest are deleted, but never the newest and the newest verified one. Backups in S3 don't count.",
  ),
  diskFloorMib: whole("BERTH_DISK_FLOOR_MIB", 1024, [8, 1_048_576]).means(
    "With less free space there are no builds, and the projects that take most may not write. Half of it is a reserve for the platform.",
  ),
};

/** Reads a registry with or without a login `user:password`; null: Berth runs one. */
function readRegistry(given: string | undefined): { readonly name: string; readonly login: string | null } | null {
  const [, login = null, name] = /^(?:(.*)@)?([^@]+)$/.exec(given ?? "") ?? [];
  return name === undefined ? null : { name, login };
}

/** Reads the parent images: an official one where neither a language's own nor a common one is given. */
function readParents(given: string | undefined): ParentImages {
  const parents: Record<string, string> = { ...officialImages };
  const named = (given ?? "").split(",").filter((each) => each !== "");
  for (const each of named.toSorted((a, b) => Number(a.includes("=")) - Number(b.includes("=")))) {
    const [, language, image = ""] = /^(?:(\w+)=)?([\w./:@-]+)$/.exec(each.trim()) ?? [];
    if (image === "" || (language !== undefined && !Object.hasOwn(officialImages, language)))
      throw new Error(
        `BERTH_BASE_IMAGE must be images, each with or without one of ${Object.keys(officialImages).join(", ")} and "=" before it, not ${shown(given)}.`,
      );
    for (const name of language === undefined ? Object.keys(parents) : [language]) parents[name] = image;
  }
  return parents as ParentImages;
}

/** Returns half of the machine's memory, or of the control group's limit, in MiB: at least 2048, at most 8192. */
export function buildMemoryMibOf(machineBytes: number, limitBytes = 0): number {
  // Without a limit, Node.js reports 0, or 2^64 in a control group of version 2.
  const bytes = limitBytes === 0 ? machineBytes : Math.min(machineBytes, limitBytes);
  return Math.min(8192, Math.max(2048, Math.floor(bytes / 2 / 1024 ** 2)));
}
