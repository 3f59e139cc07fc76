import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, chmod, link, lstat, lchown, mkdir, open, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { run } from "../../../kit/exec.ts";
import type { Trash } from "../steps/trash.ts";
import { isPlain } from "../../../building/is-plain.ts";
import type { Workspace } from "../steps/workspace.ts";

/**
 * npm packages shared by all projects, addressed by the digests in their lock files. Only the platform writes to the store: it copies a
 * package from a project's cache if the content matches the digest, so no project can change what another one installs.
 */
export type PackageStore = Awaited<ReturnType<typeof openPackageStore>>;

export interface LockedSource {
  readonly workspace: Pick<Workspace, "app" | "cache" | "hostUid">;
  readonly lockFile: string;
}

const largestStoreMib = 5120;
const largestLockBytes = 4 * 1024 * 1024;
const largestPackageBytes = 16 * 1024 * 1024;
// Folder below /cache in which npm stores contents.
const contents = ["npm", "_cacache", "content-v2"];

/** Opens the store. Empties it if it exceeds its limit, since its packages can be fetched again. */
export async function openPackageStore(store: string, trash: Trash) {
  const size = await run({ file: "du", args: ["--summarize", "--block-size=1M", store] });
  if (Number.parseInt(size.stdout, 10) > largestStoreMib) await trash.discard(store);
  await mkdir(store, { recursive: true, mode: 0o700 });
  return {
    /** Links the lock file's packages into the project's npm cache. The returned function, called after the build, stores what npm fetched. */
    async provide({ workspace: { app, cache, hostUid }, lockFile }: LockedSource) {
      const places = await placesIn(join(app, lockFile));
      // With its own settings a project may fetch packages that other projects must not see.
      const isPrivate = await isThere(join(app, ".npmrc"));
      const missing: Place[] = [];
      for (const place of places) {
        const folder = [...contents, ...place.slice(0, -1)];
        const kept = join(store, ...place);
        if (!(await isThere(kept))) missing.push(place);
        else if (await makeFolders(cache, folder, hostUid))
          await link(kept, join(cache, ...folder, place[3])).catch(() => {});
      }
      return async () => {
        for (const place of isPrivate ? [] : missing) {
          const fetched = [...contents, ...place].join("/");
          if (isPlain(cache, fetched, "file"))
            await take(join(cache, fetched), join(store, ...place), place.slice(1).join(""));
        }
      };
    },
  };
}

type Place = readonly ["sha512", string, string, string];

/** Returns the places of a lock file's packages in npm's cache; empty if the lock file cannot be read. */
async function placesIn(lockFile: string): Promise<Place[]> {
  const text = await readPlain(lockFile, largestLockBytes).catch(() => null);
  const digests = text?.toString("utf8").matchAll(/"integrity": ?"sha512-([A-Za-z0-9+/]{86}==)"/g) ?? [];
  const unique = new Set([...digests].map((match) => Buffer.from(match[1] as string, "base64").toString("hex")));
  return [...unique].map((hex) => ["sha512", hex.slice(0, 2), hex.slice(2, 4), hex.slice(4)]);
}

async function take(from: string, to: string, digest: string): Promise<void> {
  const content = await readPlain(from, largestPackageBytes).catch(() => null);
  if (content === null || createHash("sha512").update(content).digest("hex") !== digest) return;
  await mkdir(dirname(to), { recursive: true, mode: 0o755 });
  const draft = `${to}.draft`;
  await writeFile(draft, content);
  await chmod(draft, 0o444);
  await rename(draft, to);
}

async function readPlain(file: string, mostBytes: number): Promise<Buffer> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stats = await handle.stat();
  if (!stats.isFile() || stats.size > mostBytes) throw new Error(`${file} is not a file, or is too large`);
  return handle.readFile();
}

/** Creates nested folders; returns false if a build replaced one of them with something else. */
async function makeFolders(root: string, names: readonly string[], uid: number): Promise<boolean> {
  let folder = root;
  for (const name of names) {
    folder = join(folder, name);
    const stats = await lstat(folder).catch(() => null);
    if (stats !== null && !stats.isDirectory()) return false;
    if (stats !== null) continue;
    await mkdir(folder, { mode: 0o755 });
    if (uid !== process.getuid?.()) await lchown(folder, uid, uid);
  }
  return true;
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
