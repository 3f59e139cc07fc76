import { existsSync } from "node:fs";
import type { ForwardedSocket } from "../kit/server-address.ts";
import {
  certificateVariables,
  databaseCertificateVariables,
  type TrustedCertificates,
} from "../sandbox/certificates.ts";
import type { Terminal, Workload } from "../ports/runtime.ts";
import { labels } from "./settings.ts";
import { ownVolumes, storageOf, type AppTree, type ImageFolder, type OpenedImage } from "./image-trees.ts";

const mib = 1024 * 1024;
export const memoryFolderBytes = 64 * mib;
const certificatesInside = {
  pem: "/etc/ssl/certs/berth-certificates.pem",
  java: "/etc/ssl/certs/berth-certificates.jks",
};
// The engine keeps two log files of this size, so that a file is not deleted while it is being read and its successor fills.
const logFileMib = 16;

/** HostConfig settings that every container gets. */
export const hardened = {
  CapDrop: ["ALL"],
  SecurityOpt: ["no-new-privileges"],
  ReadonlyRootfs: true,
  IpcMode: "private",
  CgroupnsMode: "private",
  Init: true,
  OomScoreAdj: 500,
  RestartPolicy: { Name: "no" },
  Ulimits: [
    { Name: "nofile", Soft: 16_384, Hard: 16_384 },
    { Name: "core", Soft: 0, Hard: 0 },
  ],
};

export interface AppContainer {
  readonly workload: Workload;
  readonly image: OpenedImage;
  readonly uid: number;
  readonly labels: Readonly<Record<string, string>>;
  /** The container whose network namespace it shares. */
  readonly network: string;
  /** Its `folder` is the private layer; if null, the image's folder is used read-only. */
  readonly tree: (Omit<AppTree, "folder"> & { readonly folder: string | null }) | null;
  /** Private folders in which its VOLUMEs are as the image has them. */
  readonly volumes: readonly ImageFolder[];
  readonly storageDir: string | null;
  /** Folders of the image in which servers write; each becomes an empty tmpfs. */
  readonly folders: readonly string[];
  readonly certificates: TrustedCertificates | null;
  readonly processors: number;
  readonly ociRuntime: string | null;
  /** Run in a shell; null for the image's own command. */
  readonly command: string | null;
  /** If set, the container gets a terminal of this type and size. */
  readonly terminal?: Pick<Terminal, "type" | "size"> | undefined;
}

/** The request body that creates an application's container; the swarm runtime translates it into a service. */
export type AppBody = ReturnType<typeof appBody>;

/** Builds the application's container: an unprivileged user on a read-only root, with its folder, its storage and tmpfs for temporary files. */
export function appBody(app: AppContainer) {
  const { workload, image, uid } = app;
  const memory = `rw,nosuid,nodev,size=${memoryFolderBytes},uid=${uid},gid=${uid}`;
  const storage = storageOf(image);
  const mounted = [...app.volumes.map(({ path }) => path), ...(app.storageDir === null ? [] : [storage])];
  // The engine would create a folder without a size limit for each VOLUME that has none here: without a private one, it is in memory.
  const volumes = ownVolumes(image).filter((path) => !mounted.includes(path));
  const isInApp = (path: string) => `${image.workingDir}/`.startsWith(`${path}/`);
  const folders = app.folders.filter((path) => !mounted.includes(path) && !isInApp(path));
  return {
    Image: image.id,
    User: `${uid}:${uid}`,
    WorkingDir: image.workingDir,
    Env: environmentOf(app),
    // Always set: otherwise a label of the image would take its place.
    Labels: { ...app.labels, [labels.check]: image.check === null ? "" : JSON.stringify(image.check) },
    ...(app.command === null ? {} : { Entrypoint: ["/bin/sh", "-c"], Cmd: [app.command] }),
    ...(app.terminal === undefined ? {} : { Tty: true, OpenStdin: true, StdinOnce: true }),
    // Berth runs the image's check only while it waits for a replica; the engine would run it for the replica's whole life.
    Healthcheck: { Test: ["NONE"] },
    HostConfig: {
      ...hardened,
      NetworkMode: `container:${app.network}`,
      Tmpfs: {
        "/tmp": `${memory},mode=1777`,
        "/run": `${memory},mode=755`,
        "/home/app": `${memory},mode=700`,
        ...Object.fromEntries([...folders, ...volumes].map((path) => [path, `${memory},mode=755`])),
      },
      Mounts: [
        ...(app.storageDir === null ? [] : [bind(app.storageDir, storage, workload.storage_access !== "open")]),
        ...(app.tree?.folder ? [bind(app.tree.folder, image.workingDir, false)] : []),
        ...app.volumes.map(({ path, folder }) => bind(folder, path, false)),
        ...(app.tree?.passwd ? [bind(app.tree.passwd, "/etc/passwd", true)] : []),
        ...certificateBinds(app),
      ],
      PidsLimit: workload.limits.processes,
      Memory: workload.limits.memoryBytes,
      MemorySwap: workload.limits.memoryBytes,
      NanoCpus: Math.round(Math.min(workload.limits.cpus, app.processors) * 1e9),
      LogConfig: { Type: "json-file", Config: { "max-size": `${logFileMib}m`, "max-file": "2" } },
      ...(app.terminal === undefined ? {} : { ConsoleSize: [app.terminal.size.rows, app.terminal.size.columns] }),
      ...(app.tree?.group ? { GroupAdd: [String(app.tree.group)] } : {}),
      ...(app.ociRuntime === null ? {} : { Runtime: app.ociRuntime }),
    },
  };
}

const bind = (Source: string, Target: string, ReadOnly: boolean) => ({ Type: "bind", Source, Target, ReadOnly });

function certificateBinds({ certificates }: AppContainer): ReturnType<typeof bind>[] {
  if (certificates === null) return [];
  const { pem, java } = certificates;
  return [
    bind(pem, certificatesInside.pem, true),
    ...(java === null ? [] : [bind(java, certificatesInside.java, true)]),
  ];
}

function environmentOf(app: AppContainer): string[] {
  const { workload, image, certificates, terminal } = app;
  const env: Readonly<Record<string, string>> = {
    HOME: "/home/app",
    LANG: "C.UTF-8",
    ...(certificates === null
      ? {}
      : certificateVariables({ ...certificatesInside, java: certificates.java && certificatesInside.java })),
    ...(certificates === null ? {} : databaseCertificateVariables(certificatesInside.pem, workload.env)),
    ...image.env,
    ...workload.env,
    ...(app.storageDir === null ? {} : { STORAGE_DIR: storageOf(image) }),
    ...(terminal === undefined ? {} : { TERM: terminal.type }),
    ...(workload.port === null ? {} : { PORT: String(workload.port), HOST: "0.0.0.0" }),
  };
  const entries = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  // A name without a value removes the HOSTNAME that the engine sets: servers such as Next.js would listen on that address only.
  return "HOSTNAME" in env ? entries : [...entries, "HOSTNAME"];
}

export interface NetworkContainer {
  readonly image: string;
  readonly uid: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly network: string;
  readonly nameServers: readonly string[];
  readonly reach: readonly ForwardedSocket[];
}

// `exec` for the last forwarder: when it exits, the container stops, and the instance with it.
const forward = `while [ $# -gt 2 ]; do socat "TCP4-LISTEN:$1,bind=127.0.0.1,reuseaddr,fork,max-children=256" "UNIX-CONNECT:$2" & shift 2; done
[ $# -eq 0 ] && exec sleep infinity
exec socat "TCP4-LISTEN:$1,bind=127.0.0.1,reuseaddr,fork,max-children=256" "UNIX-CONNECT:$2"`;

/**
 * Builds the container that holds an instance's network. It reserves the instance's address until it is removed, even after the application
 * has exited, and forwards 127.0.0.1:<port> to the project's database before the application starts. It runs the host's programs only, no
 * project code.
 */
export function networkBody(holder: NetworkContainer): object {
  const sockets = holder.reach.map(({ port, socket_path }) => {
    const cut = socket_path.lastIndexOf("/");
    return { port, folder: socket_path.slice(0, cut), inside: `/reach/${port}/${socket_path.slice(cut + 1)}` };
  });
  return systemBody({
    ...holder,
    entrypoint: ["/bin/sh", "-c", forward, "sh"],
    words: sockets.flatMap(({ port, inside }) => [String(port), inside]),
    // Mounts the folder, not the socket: a restarted database creates a new socket.
    binds: sockets.map(({ port, folder }) => ({ source: folder, target: `/reach/${port}`, writable: false })),
  });
}

export interface SystemContainer {
  readonly image: string;
  readonly uid: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Name of the engine's network; `none` for no network. */
  readonly network: string;
  readonly nameServers?: readonly string[];
  readonly entrypoint: readonly string[];
  readonly words: readonly string[];
  readonly workingDir?: string;
  readonly binds: readonly { readonly source: string; readonly target: string; readonly writable: boolean }[];
}

/** Builds a container that runs the host's programs, mounted read-only, as the project's user. */
export function systemBody(container: SystemContainer): object {
  const system = ["/usr", "/bin", "/lib", "/lib64"].filter((path) => existsSync(path));
  const binds = [...system.map((path) => ({ source: path, target: path, writable: false })), ...container.binds];
  return {
    Image: container.image,
    Hostname: "app",
    User: `${container.uid}:${container.uid}`,
    WorkingDir: container.workingDir ?? "/",
    Env: ["PATH=/usr/bin:/bin"],
    Labels: container.labels,
    Entrypoint: container.entrypoint,
    Cmd: container.words,
    HostConfig: {
      ...hardened,
      NetworkMode: container.network,
      Dns: container.nameServers ?? [],
      Mounts: binds.map(({ source, target, writable }) => ({
        ...{ Type: "bind", Source: source, Target: target, ReadOnly: !writable },
      })),
      PidsLimit: 512,
      Memory: 128 * mib,
      MemorySwap: 128 * mib,
      LogConfig: { Type: "none", Config: {} },
    },
  };
}
