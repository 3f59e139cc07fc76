import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { Readable } from "node:stream";
import { DockerRefused, unlessStatus, type DockerApi } from "../kit/docker-api.ts";
import { runOk } from "../kit/exec.ts";
import { imageLabels, type ContainerManifest } from "../ports/image-labels.ts";
import type { ProjectImage, Workload } from "../ports/runtime.ts";
import { labels, uidOf, type DockerContext } from "./settings.ts";
import { checkOf, type ImageHealthcheck } from "./own-check.ts";

export type OpenedImage = Awaited<ReturnType<typeof openImage>>;

interface ImageDetails {
  readonly Id: string;
  readonly Config: {
    readonly Labels: Readonly<Record<string, string>> | null;
    readonly WorkingDir: string;
    readonly Env: readonly string[] | null;
    readonly Volumes: Readonly<Record<string, object>> | null;
    readonly Healthcheck?: ImageHealthcheck;
    readonly Shell?: readonly string[];
    readonly User?: string;
  };
}

/** Reads an image's configuration and manifest. Throws if the image is missing or belongs to another project. */
export async function openImage({ api }: DockerContext, workload: ProjectImage) {
  const { Id: id, Config: config } = await api.call<ImageDetails>({ path: `/images/${workload.image_ref}/json` });
  const written = config.Labels?.[imageLabels.manifest];
  if (written === undefined || config.Labels?.[imageLabels.project] !== workload.project_id)
    throw new Error(`the image ${workload.image_ref} was not built for ${workload.project_id}`);
  const env = (config.Env ?? []).map((entry) => [
    entry.slice(0, entry.indexOf("=")),
    entry.slice(entry.indexOf("=") + 1),
  ]);
  return {
    id,
    manifest: JSON.parse(written) as ContainerManifest,
    /** The image's WORKDIR, which is the application's folder; `/` if it sets none. */
    workingDir: config.WorkingDir === "" ? "/" : config.WorkingDir,
    env: Object.fromEntries(env) as Record<string, string>,
    volumes: Object.keys(config.Volumes ?? {}).map((path) => posix.resolve("/", path)),
    /** Command and timeout of its HEALTHCHECK; null if it has none. */
    check: checkOf(config.Healthcheck, config.Shell),
    user: config.User ?? "",
  };
}

/** Returns the command of the workload's process, or null for the image's own command. Throws if the image does not define that process. */
export function commandOf({ manifest }: OpenedImage, { process, image_ref }: Workload): string | null {
  if (process === "web" && manifest.uses_own_command) return null;
  const command = process === "web" ? manifest.web_command : manifest.processes[process];
  if (command === null || command === undefined) throw new Error(`the image ${image_ref} has no process ${process}`);
  return command;
}

/** Where the project's persistent folder is mounted. */
export const storageOf = ({ manifest }: OpenedImage): string => manifest.storage ?? "/storage";

const inMemory = ["/tmp", "/run", "/home/app"];

export function ownVolumes(image: OpenedImage): readonly string[] {
  const others = [...inMemory, image.workingDir, storageOf(image)];
  return image.volumes.filter((path) => !others.includes(path));
}

const treeOf = ({ options }: DockerContext, { project_id, image_ref }: ProjectImage): string =>
  join(options.stateDir, "trees", project_id, image_ref.replace(/^sha256:/, ""));

/** The application's folder as built, and the image's users. */
export interface AppTree {
  readonly folder: string;
  /** Path of its /etc/passwd; null if the image has none. */
  readonly passwd: string | null;
  readonly group: number | null;
}

/**
 * Returns the application's folder, extracted once per image and owned by the project's user; the private layers of its instances are
 * mounted over it. The engine's own layers belong to root, and their location is not part of its API. Null if the working directory is `/`.
 */
export async function appTree(
  context: DockerContext,
  workload: Workload,
  { workingDir, id, user }: OpenedImage,
): Promise<AppTree | null> {
  if (workingDir === "/") return null;
  const tree = treeOf(context, workload);
  await context.runExclusive(tree, async () => {
    const source = { id, path: workingDir, uid: uidOf(context.options, workload), user };
    if (!existsSync(tree)) await makeTree(context, tree, source);
  });
  const accounts = await readFile(groupFile(tree), "utf8").catch(() => null);
  if (accounts === null) return { folder: tree, passwd: null, group: null };
  return { folder: tree, passwd: passwdFile(tree), group: JSON.parse(accounts) as number | null };
}

/** A folder of the image, extracted to `folder`. */
export interface ImageFolder {
  readonly path: string;
  readonly folder: string;
}

/** Returns the image's VOLUMEs as built, extracted once per image like the application's folder. */
export function volumeTrees(context: DockerContext, workload: Workload, image: OpenedImage): Promise<ImageFolder[]> {
  const base = `${treeOf(context, workload)}.volumes`;
  const source = { id: image.id, uid: uidOf(context.options, workload) };
  const extract = async (path: string): Promise<ImageFolder> => {
    const folder = join(base, encodeURIComponent(path));
    await context.runExclusive(folder, async () => {
      if (!existsSync(folder)) await makeTree(context, folder, { ...source, path });
    });
    return { path, folder };
  };
  return Promise.all(ownVolumes(image).map(extract));
}

/** Copies what the image has at the path of the persistent folder, while that is empty, as an engine does with its volumes. */
export async function fillStorage(context: DockerContext, workload: Workload, image: OpenedImage, folder: string) {
  if ((image.manifest.storage ?? null) === null || workload.storage_access !== "open") return;
  await context.runExclusive(folder, async () => {
    if (readdirSync(folder).length > 0) return;
    await unpack(context, {
      id: image.id,
      path: storageOf(image),
      draft: folder,
      uid: uidOf(context.options, workload),
    });
  });
}

/** Path of the file that caches which of the image's folders servers write to. */
export const foldersFile = (context: DockerContext, image: ProjectImage): string => `${treeOf(context, image)}.folders`;

const passwdFile = (tree: string): string => `${tree}.passwd`;
const groupFile = (tree: string): string => `${tree}.group`;

async function makeTree(
  context: DockerContext,
  tree: string,
  source: Omit<Unpacking, "draft"> & { readonly user?: string },
): Promise<void> {
  const parent = dirname(tree);
  mkdirSync(parent, { recursive: true, mode: 0o711 });
  const draft = await mkdtemp(join(parent, "new-"));
  try {
    await unpack(context, { ...source, draft }, tree);
    await chmod(draft, 0o755);
    await rename(draft, tree);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

interface Unpacking {
  readonly id: string;
  readonly path: string;
  readonly draft: string;
  readonly uid: number;
  /** If set, its users and groups are noted, too. */
  readonly user?: string;
}

/** Runs tar as the project's user, which then owns every file and can write nowhere else. */
async function unpack({ api, tag, engine }: DockerContext, unpacking: Unpacking, tree = ""): Promise<void> {
  const { id, draft, uid, user } = unpacking;
  const owner = (await engine()).firstUid + uid;
  await runOk({ file: "chown", args: [`${owner}:${owner}`, draft] });
  const body = { Image: id, Cmd: ["-"], Labels: { [labels.runtime]: tag, [labels.role]: "tree" } };
  const { Id: container } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
  try {
    const path = `/containers/${container}/archive`;
    const archive = api.stream({ path, query: { path: unpacking.path }, timeoutMs: 0 });
    // A VOLUME need not exist in the image.
    const stdin = await unlessStatus(archive, ...(user === undefined ? [404] : []));
    const args = ["-x", "--no-same-owner", "--strip-components=1", "-f", "-"];
    if (stdin !== undefined)
      await runOk({ file: "tar", args }, { cwd: draft, uid: owner, gid: owner, stdin, timeoutMs: 600_000 });
    if (user !== undefined) await writeAccounts(api, path, { tree, user, uid });
  } finally {
    await api.call({ method: "DELETE", path: `/containers/${container}`, query: { force: true, v: true } });
  }
}

async function writeAccounts(
  api: DockerApi,
  path: string,
  { tree, user, uid }: { readonly tree: string; readonly user: string; readonly uid: number },
): Promise<void> {
  const stdin = await unlessStatus(api.stream({ path, query: { path: "/etc/passwd" }, timeoutMs: 0 }), 404);
  if (stdin === undefined) return;
  const { stdout } = await runOk({ file: "tar", args: ["-x", "--to-stdout", "-f", "-"] }, { stdin });
  const { passwd, group } = accountsOf(stdout, user, uid);
  // `runOk` decodes output as latin1, one character per byte.
  await writeFile(passwdFile(tree), passwd, { mode: 0o644, encoding: "latin1" });
  await writeFile(groupFile(tree), JSON.stringify(group));
}

/** Deletes an image and its extracted tree. Throws while a running container uses it. */
export async function removeImage(context: DockerContext, image: ProjectImage): Promise<void> {
  const found = await openImage(context, image).catch((error: unknown) => {
    if (error instanceof DockerRefused && error.status === 404) return null;
    throw error;
  });
  if (found !== null) {
    const path = `/images/${image.image_ref}`;
    await unlessStatus(context.api.call({ method: "DELETE", path, query: { force: true } }), 404);
  }
  const tree = treeOf(context, image);
  for (const path of [tree, `${tree}.volumes`, passwdFile(tree), groupFile(tree), foldersFile(context, image)])
    rmSync(path, { recursive: true, force: true });
}

/** Returns the image of the containers that hold networks: an almost empty root on which the host's programs are mounted. */
export function emptyImage(context: DockerContext): Promise<string> {
  return context.runExclusive(emptyImageName, () => findOrImport(context));
}

const emptyImageName = "berth/network:1";

async function findOrImport({ api }: DockerContext): Promise<string> {
  const name = emptyImageName;
  const found = await unlessStatus(api.call<{ Id: string }>({ path: `/images/${name}/json` }), 404);
  if (found) return found.Id;
  const [repo, tag] = name.split(":");
  const body = Readable.from(await packEmptyRoot());
  await api.call({ method: "POST", path: "/images/create", query: { fromSrc: "-", repo, tag }, body });
  return (await api.call<{ Id: string }>({ path: `/images/${name}/json` })).Id;
}

/** Returns a tar archive with an empty folder `tmp`. Not of this machine's own: tar fails while other programs change that. */
async function packEmptyRoot(): Promise<Buffer> {
  const root = await mkdtemp(join(tmpdir(), "berth-empty-root-"));
  try {
    await mkdir(join(root, "tmp"));
    await chmod(join(root, "tmp"), 0o1777);
    // `runOk` decodes output as latin1, one character per byte.
    const { stdout } = await runOk({ file: "tar", args: ["-C", root, "-cf", "-", "tmp"] });
    return Buffer.from(stdout, "latin1");
  } finally {
    await rm(root, { recursive: true });
  }
}

/** Adds the project's user to the image's `passwd`, because `whoami` and `os.userInfo()` fail without a name for their uid. */
export function accountsOf(passwd: string, user: string, uid: number) {
  const lines = passwd.split("\n").filter((line) => line.split(":").length >= 7);
  const [who = "", group = ""] = user.split(":");
  const fields = lines.map((line) => line.split(":")).find(([name, , number]) => name === who || number === who);
  const isRoot = who === "" || who === "0" || fields?.[2] === "0";
  const name = isRoot ? "app" : (fields?.[0] ?? (/^\d+$/.test(who) ? "app" : who));
  const gid = /^\d+$/.test(group) ? Number(group) : Number(fields?.[3] ?? 0);
  const own = [name, "x", uid, uid, "", "/home/app", fields?.[6] || "/bin/sh"].join(":");
  const others = lines.filter((line) => !line.startsWith(`${name}:`));
  return {
    passwd: `${[...others, own].join("\n")}\n`,
    /** Group of the image's USER, whose files the application may read as that user could. Null if there is no such group or it is root's. */
    group: isRoot || gid === 0 ? null : gid,
  };
}
