import { existsSync, readFileSync } from "node:fs";
import { forwardedSockets } from "../kit/server-address.ts";
import { allTogether } from "../kit/throw-together.ts";
import { until } from "../kit/until.ts";
import type { InstanceKey, Terminal, Workload } from "../ports/runtime.ts";
import { appBody, networkBody } from "./container-bodies.ts";
import { labelsOf, containerName, makeStorage, uidOf, type ContainerRole, type DockerContext } from "./settings.ts";
import { readContainer, removeContainer, startContainer } from "./containers.ts";
import * as imageTrees from "./image-trees.ts";
import type { PrivateFolders } from "./private-folders.ts";
import type { ProjectNetworks } from "./project-networks.ts";
import { serverFolders } from "./server-folders.ts";
import type { StartGate } from "./start-gate.ts";

export interface DockerParts extends DockerContext {
  readonly networks: ProjectNetworks;
  readonly folders: PrivateFolders;
  readonly starts: StartGate;
}

export interface StartedContainers {
  readonly name: string;
  readonly app: string;
}

export interface Run {
  readonly workload: Workload;
  readonly key: InstanceKey;
  readonly role: Extract<ContainerRole, "app" | "once">;
  readonly command: (image: imageTrees.OpenedImage) => string | null;
  readonly terminal?: Terminal | undefined;
  readonly beforeStart?: (id: string) => Promise<void>;
}

/** Starts the network's container, then the application's. On failure it removes both. */
export function startContainers(parts: DockerParts, run: Run): Promise<StartedContainers> {
  return parts.starts.pass(() => startBoth(parts, run));
}

async function startBoth(parts: DockerParts, run: Run): Promise<StartedContainers> {
  const name =
    run.role === "app" ? containerName(parts.tag, run.key) : `berth-${parts.tag}-once-${run.key.workload_id}`;
  await removeContainers(parts, name);
  const image = await imageTrees.openImage(parts, run.workload);
  const command = run.command(image);
  try {
    // Waits for all of them even if one fails: a folder mounted after the removal below would stay.
    const [network, { tree, volumes }, storageDir, engine, folders] = await allTogether([
      startNetwork(parts, run, name),
      openFolders(parts, run, { name, image }),
      openStorage(parts, run, image),
      parts.engine(),
      serverFolders(parts, run.workload, imageTrees.foldersFile(parts, run.workload)),
    ]);
    const body = appBody({
      ...{ workload: run.workload, image, command, network, tree, volumes, storageDir, folders },
      uid: uidOf(parts.options, run.workload),
      labels: labelsOf(parts.tag, run.role, run.workload, run.key),
      certificates: parts.certificates,
      processors: engine.processors,
      ociRuntime: parts.options.ociRuntime ?? null,
      terminal: run.terminal,
    });
    return { name, app: await startContainer(parts.api, name, body, run.beforeStart) };
  } catch (fault) {
    await removeContainers(parts, name).catch(() => {});
    throw fault;
  }
}

/** Removes both containers and the private folder of an attempt. Idempotent. */
export async function removeContainers({ api, folders }: DockerParts, name: string): Promise<void> {
  await removeContainer(api, name);
  await Promise.all([removeContainer(api, `${name}-net`), folders.close(name)]);
}

async function openFolders(
  parts: DockerParts,
  { workload }: Run,
  { name, image }: { readonly name: string; readonly image: imageTrees.OpenedImage },
): Promise<{ readonly tree: imageTrees.AppTree | null; readonly volumes: readonly imageTrees.ImageFolder[] }> {
  const tree = await imageTrees.appTree(parts, workload, image);
  if (!parts.folders.isAvailable) return { tree: null, volumes: [] };
  const volumes = await imageTrees.volumeTrees(parts, workload, image);
  const owner = (await parts.engine()).firstUid + uidOf(parts.options, workload);
  const trees = [...(tree === null ? [] : [tree.folder]), ...volumes.map(({ folder }) => folder)];
  const opened = [...(await parts.folders.open(name, trees, owner))];
  return {
    tree: tree === null ? null : { ...tree, folder: opened.shift() as string },
    volumes: volumes.map(({ path }, index) => ({ path, folder: opened[index] as string })),
  };
}

async function openStorage(parts: DockerParts, { workload }: Run, image: imageTrees.OpenedImage): Promise<string> {
  const folder = await makeStorage(parts, { ...workload, project_id: workload.storage_id ?? workload.project_id });
  await imageTrees.fillStorage(parts, workload, image, folder);
  return folder;
}

/** Returns the container's id once it forwards to the services that the application may need immediately. */
async function startNetwork(parts: DockerParts, { workload, key, role }: Run, name: string): Promise<string> {
  const reach = forwardedSockets(workload.reach);
  const [image, network] = await Promise.all([
    imageTrees.emptyImage(parts),
    parts.networks.open(workload.project_number),
  ]);
  const labels = labelsOf(parts.tag, role === "app" ? "network" : "once", workload, key);
  const body = networkBody({
    ...{ image, network, reach, labels, uid: uidOf(parts.options, workload) },
    ...{ nameServers: parts.networks.nameServers },
  });
  const id = await startContainer(parts.api, `${name}-net`, body);
  if (reach.length === 0) return id;
  const { Pid: pid } = (await readContainer(parts.api, id)).State;
  const listens = () => (reach.every(({ port }) => isListening(pid, port)) ? true : undefined);
  if (!(await until(listens, { timeoutMs: 60_000, firstMs: 5, atMostMs: 50 })))
    throw new Error("the forwarder to the project's database did not start; is socat installed?");
  return id;
}

/** Looks for the port in proc_net_tcp(5) of the process's network: the local address is in hexadecimal, and state 0A is LISTEN. */
function isListening(pid: number, port: number): boolean {
  const entry = `:${port.toString(16).toUpperCase().padStart(4, "0")} 00000000:0000 0A`;
  return existsSync(`/proc/${pid}/net/tcp`) && readFileSync(`/proc/${pid}/net/tcp`, "utf8").includes(entry);
}
