import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { FilesRefused, keptFolder, restoredFolder } from "../../kit/folder-tar.ts";
import { tarHeader, tarPadding } from "../../kit/tar-member.ts";
import { furtherName } from "../backups/backups.ts";
import type { Context, Input } from "../context.ts";
import type { Result } from "../../contract/routes.ts";
import { diskUseOf } from "./disk.ts";
import { saveStorageSize } from "./queries.ts";
import { storageOverLimit, whatIsThere } from "./rules.ts";

/** Writes the body into the storage folder: first beside the live files, so that a path is replaced by a whole file or not at all. */
export async function writeFile(ctx: Context<"disk.write">, input: Input<"disk.write">) {
  const { path, size_bytes, sha256, replace } = input.query;
  const { caller, project, platform, tx } = ctx;
  if (replace && caller.approval_mode && sha256 === undefined)
    return ctx.fail("invalid_request", { error: "Give the file's sha256: a person approves that very file." });
  if ((await platform.ports.dataDisk.observe()).is_short) return ctx.fail("storage_full");
  const { use, limits } = await diskUseOf(tx, project.key, platform.settings.disk);
  const used = use.storage_bytes ?? 0;
  if (use.storage_access !== "open" || used + size_bytes > limits.storage_bytes)
    return ctx.fail("disk_limit_reached", storageOverLimit(used, size_bytes, limits));
  ctx.note({ target: project.slug, detail: { path, size_bytes, sha256 }, losesNothing: !replace });
  const look = () => requireRoomAt(ctx, path, replace);
  const outcome = async (signal: AbortSignal) => {
    await look();
    return putInPlace(ctx, input, signal);
  };
  return { changesLate: true as const, look, outcome };
}

export const ownerOf = ({ key, number }: Context<"disk.write">["project"]) => ({
  project_id: key.project_id,
  project_number: number,
});

async function requireRoomAt({ platform, project, fail }: Context<"disk.write">, path: string, replace: boolean) {
  const there = await platform.ports.runtime.statStored(ownerOf(project), path);
  if (there === undefined || (replace && there.kind !== "folder")) return;
  fail("conflict", {
    error: `${whatIsThere(path, there)}.`,
    hint:
      there.kind === "folder"
        ? `No file replaces a folder: name a path below it, such as ${path}/photo.jpg.`
        : "With `replace` (`berth disk put --replace`) the new one takes its place; what is there now is then kept below .restored.",
    foreign: true,
  });
}

/** The name of the file while it is beside the live ones. */
const member = "file";
const lateMs = 60_000;

/** Packs the body for `writeStorage`, and refuses one that is not the announced file. */
async function* archiveOf(
  { platform, fail }: Context<"disk.write">,
  { size_bytes, sha256 }: Input<"disk.write">["query"],
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield tarHeader(member, size_bytes, platform.clock.now());
  const hash = createHash("sha256");
  let received = 0;
  for await (const chunk of body) {
    received += chunk.length;
    if (received > size_bytes) break;
    hash.update(chunk);
    yield chunk;
  }
  if (received !== size_bytes)
    fail("invalid_request", { error: `The body has not the ${size_bytes} bytes that size_bytes names.` });
  if (sha256 !== undefined && hash.digest("hex") !== sha256)
    fail("invalid_request", { error: "The body is not the file whose sha256 was given." });
  yield tarPadding(size_bytes);
  yield Buffer.alloc(1024);
}

async function putInPlace(
  ctx: Context<"disk.write">,
  { query, body }: Input<"disk.write">,
  signal: AbortSignal,
): Promise<Result<"disk.write">> {
  const { db, ports } = ctx.platform;
  const { path, size_bytes, replace } = query;
  const owner = ownerOf(ctx.project);
  const name = furtherName("uploaded");
  const kept_folder = keptFolder(name).slice(restoredFolder.length + 1);
  const kept = `${keptFolder(name)}/${path}`;
  const { runtime } = ports;
  try {
    const archive = Readable.from(archiveOf(ctx, query, body), { objectMode: false });
    await runtime.writeStorage(owner, name, archive, signal);
    const staged = { from: `${restoredFolder}/${name}/${member}`, to: path, ...(replace ? { kept } : {}) };
    // Not interrupted, so that the answer says what has happened.
    const moved = await runtime.moveStored(owner, staged, AbortSignal.timeout(lateMs));
    if (moved !== "moved" && moved !== "replaced")
      return ctx.fail("conflict", { error: `${path} was made anew meanwhile.`, foreign: true });
    await saveStorageSize(db, owner.project_id, await runtime.storageBytes(owner));
    return { path, size_bytes, ...(moved === "replaced" ? { kept, kept_folder } : { kept: null, kept_folder: null }) };
  } catch (error) {
    if (error instanceof FilesRefused) return ctx.fail("conflict", { error: `${error.message}.`, foreign: true });
    throw error;
  } finally {
    await runtime.removeStored(owner, `${restoredFolder}/${name}`, AbortSignal.timeout(lateMs)).catch(() => {});
  }
}
