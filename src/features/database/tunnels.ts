import { randomBytes } from "node:crypto";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { limits } from "../../contract/limits.ts";
import type { Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { ServerAddress } from "../../kit/server-address.ts";
import { carryServer, connectServer, type ServerTls } from "../../kit/server-tls.ts";
import { DatabaseWorkFailed, type DatabaseSpec } from "../../ports/postgres-host.ts";
import * as backups from "../backups/backups.ts";
import { Refused, type Context, type HandlerPlatform, type Tunnel } from "../context.ts";
import { requireRoomInDatabase } from "../disk/disk.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { awaken, noBranch, serverOf, specOf } from "./database.ts";
import { databaseOf } from "./queries.ts";
import * as tunnelQueries from "./tunnel-queries.ts";

type AskingContext = Context<"database.connect"> | Context<"database.dump"> | Context<"database.import">;
type Wanted = Pick<
  tunnelQueries.NewTunnel,
  "purpose" | "format" | "database_name" | "branch" | "backup_id" | "encrypted"
>;

/** Creates a tunnel to the database that its token may open within a minute. */
export async function requestTunnel(ctx: AskingContext, wanted: Wanted): Promise<Result<"database.tunnel">> {
  const { key } = ctx.project;
  const { database_name, branch } = wanted;
  const row = await awaken(ctx.platform, await databaseOf(ctx.tx, key.org_id, key.project_id, branch));
  if (row === undefined) return branch === undefined ? ctx.fail("no_database") : ctx.fail("not_found", noBranch);
  if (serverOf(row) === null)
    return ctx.fail("unavailable", { error: "The database is still being created. Try again in a moment." });
  if (database_name !== null && wanted.purpose !== "import" && !(await backups.hasDatabase(ctx.tx, row, database_name)))
    return ctx.fail("not_found");
  return createTunnel(ctx, wanted);
}

async function createTunnel(ctx: AskingContext, wanted: Wanted): Promise<Result<"database.tunnel">> {
  const { key } = ctx.project;
  if ((await tunnelQueries.livingTunnels(ctx.tx, key.org_id)) >= limits.tunnels_per_organization)
    return ctx.fail("conflict", {
      error: `${limits.tunnels_per_organization} tunnels of the organization are open already.`,
      hint: "End one of them first. A tunnel whose client disappeared ends by itself within a minute.",
    });
  const tunnel = await tunnelQueries.insertTunnel(ctx.tx, {
    ...key,
    ...wanted,
    id: newId("tun"),
    token_id: ctx.caller.token_id,
  });
  ctx.note({ target: ctx.project.slug, detail: { tunnel: tunnel.id } });
  return tunnel;
}

interface WantedBackup {
  readonly backup_id: string;
  readonly format: "custom" | "plain";
  readonly encrypted: boolean;
  readonly database?: string | undefined;
  readonly branch?: string | undefined;
}

/** Requests a tunnel that transfers a backup; it must be one that the project could restore. */
export async function requestDownload(ctx: Context<"database.dump">, wanted: WantedBackup) {
  const { backup_id, format, encrypted, database, branch } = wanted;
  if (database !== undefined || branch !== undefined)
    return ctx.fail("conflict", { error: "Give a database, a branch or a backup, not several." });
  const backup = await backups.restorableBackup(ctx.tx, ctx.project.key, ctx.caller, backup_id);
  if (backup === undefined) return ctx.fail("not_found");
  if (backup.status !== "completed")
    return ctx.fail("conflict", {
      error: "Only a completed backup can be downloaded.",
      hint: "Wait until it is completed, or download another one.",
    });
  const ask = backup.content === "files" ? createTunnel : requestTunnel;
  return ask(ctx, { purpose: "dump", format, encrypted, database_name: null, backup_id });
}

const mostFurther = 5;

export async function requestImport(ctx: Context<"database.import">, format: "custom" | "plain") {
  await requireRoomInDatabase(ctx);
  const { org_id, project_id } = ctx.project.key;
  const further = await backups.restoredDatabases(ctx.tx, org_id, project_id);
  if (further.length >= mostFurther)
    return ctx.fail("conflict", {
      error: `The project already has ${further.length} databases beside the live one.`,
      hint: "Drop one that is no longer needed: DELETE /v1/projects/:slug/database/restored/:database.",
    });
  return requestTunnel(ctx, { purpose: "import", format, database_name: backups.furtherName("imported") });
}

/** Returns a tunnel, or opens it when the request is an upgrade. */
export async function showOrOpen(
  ctx: Context<"database.tunnel">,
  id: string,
  isConnection: boolean,
): Promise<Result<"database.tunnel">> {
  const { key } = ctx.project;
  const found = await tunnelQueries.selectTunnel(ctx.platform.db, key, id);
  if (found === undefined) return ctx.fail("not_found");
  const { token_id, ...shown } = found;
  if (!ctx.isUpgrade) return shown;
  // Other tokens of the organization can see the tunnel but not use it.
  if (token_id !== ctx.caller.token_id) return ctx.fail("conflict", { error: "Another token requested this tunnel." });
  const { platform } = ctx;
  const backup =
    found.backup_id === null ? undefined : await backups.storedBackup(platform.db, key.org_id, found.backup_id);
  if (backup?.content === "files") {
    if (!(await tunnelQueries.openTunnel(platform.db, id, null))) return ctx.fail("conflict", gone);
    return ctx.tunnel((tunnel) =>
      serve({ platform, id }, tunnel, () => serveFiles({ platform, ...found }, backup, tunnel)),
    );
  }
  const row = await databaseOf(platform.db, key.org_id, key.project_id, found.branch);
  if (row === undefined) return found.branch === null ? ctx.fail("no_database") : ctx.fail("not_found", noBranch);
  if (isConnection) {
    if (found.status !== "open") return ctx.fail("conflict", { error: "The session is not open." });
    const server = serverOf(row);
    if (server === null)
      return ctx.fail("unavailable", { error: "The database is still being created. Try again in a moment." });
    const tls = ctx.platform.ports.postgresHost.tlsOf(row.id);
    return ctx.tunnel((tunnel) => carryConnection(server, tls, tunnel));
  }
  const own = specOf(ctx.platform.vault, row);
  const spec = found.database === null ? own : { ...own, database_name: found.database };
  const role = needsRole(found) ? `${own.role_name}_t${randomBytes(6).toString("hex")}` : null;
  if (!(await tunnelQueries.openTunnel(platform.db, id, role))) return ctx.fail("conflict", gone);
  const { purpose, format, backup_id, encrypted } = found;
  const opened = { platform, key, id, purpose, format, backup_id, encrypted, role, spec, own };
  const dropRole = async () => {
    // A deleted branch took its roles along.
    if (
      found.branch !== null &&
      (await databaseOf(platform.db, key.org_id, key.project_id, found.branch)) === undefined
    )
      return;
    // If this fails, the task for dead tunnels does it later.
    if (role !== null) await platform.ports.postgresHost.dropSessionRole(own, role);
  };
  return ctx.tunnel((tunnel) => serve({ platform, id, dropRole }, tunnel, () => serveAs(opened, tunnel)));
}

const gone = { error: "The tunnel was already opened, or it expired before it was opened. Request a new one." };

function needsRole({ purpose, format }: Pick<tunnelQueries.NewTunnel, "purpose" | "format">): boolean {
  return purpose === "session" || (purpose === "import" && format === "plain");
}

interface Opened extends Pick<tunnelQueries.NewTunnel, "purpose" | "format"> {
  readonly platform: HandlerPlatform;
  readonly key: ProjectKey;
  readonly id: string;
  readonly backup_id: string | null;
  readonly encrypted: boolean;
  readonly role: string | null;
  readonly own: DatabaseSpec;
  readonly spec: DatabaseSpec;
}

const aliveEveryMs = 5000;

interface Served extends Pick<Opened, "platform" | "id"> {
  readonly dropRole?: () => Promise<void>;
}

async function serve({ platform, id, dropRole }: Served, tunnel: Tunnel, work: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => void tunnelQueries.keepTunnelAlive(platform.db, id).catch(() => {}), aliveEveryMs);
  let reason = "done";
  try {
    await work();
  } catch (error) {
    reason = tunnel.signal.aborted ? reasonOf(tunnel.signal.reason) : reasonOf(error);
    if (error instanceof backups.ArchiveDamaged) throw new Refused("backup_damaged", { error: error.message });
    if (error instanceof DatabaseWorkFailed) throw new Refused("conflict", { error: error.message, foreign: true });
    throw error;
  } finally {
    clearInterval(timer);
    await dropRole?.();
    await tunnelQueries.markTunnelClosed(platform.db, id, reason);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Refused || error instanceof DatabaseWorkFailed || error instanceof backups.ArchiveDamaged)
    return error.message.slice(0, 200);
  return "The connection ended.";
}

async function serveAs(opened: Opened, tunnel: Tunnel): Promise<void> {
  if (opened.purpose === "dump") return serveDump(opened, tunnel);
  if (opened.purpose === "session") {
    await letIn(opened, tunnel);
    return ended(tunnel);
  }
  const { postgresHost } = opened.platform.ports;
  const { database_name } = opened.spec;
  await postgresHost.createDatabase(opened.own, database_name);
  try {
    await (opened.format === "plain" ? importByClient(opened, tunnel) : importArchive(opened, tunnel));
    await opened.platform.db
      .transaction()
      .execute((tx) => backups.insertRestored(tx, { ...opened.key, name: database_name, backup_id: null }));
  } catch (error) {
    await postgresHost.dropDatabase(opened.own, database_name);
    throw error;
  }
  tunnel.tell({ type: "imported", database: database_name });
}

/** Creates the session's role and sends its login to the client alone. */
async function letIn({ platform, own, spec, role }: Opened, tunnel: Tunnel): Promise<void> {
  const login = { role_name: role ?? "", password: randomBytes(24).toString("base64url") };
  await platform.ports.postgresHost.openSessionRole(own, login);
  tunnel.tell({ type: "ready", user: login.role_name, password: login.password, database: spec.database_name });
}

async function serveDump(opened: Opened, tunnel: Tunnel): Promise<void> {
  const { platform, own, spec, format, backup_id } = opened;
  const { postgresHost } = platform.ports;
  const { signal } = tunnel;
  const consume = async (archive: Readable) =>
    send(opened, format === "custom" ? archive : await postgresHost.archiveAsText(own, { archive, signal }), tunnel);
  if (backup_id === null) await postgresHost.dump(spec, { signal, consume, isCompressed: false });
  else await consume(await archiveOf(opened, backup_id, signal));
}

/** Opens a backup's archive; the stream fails at its end when the file differs from what was stored. */
async function archiveOf({ platform, key }: Opened, backupId: string, signal: AbortSignal): Promise<Readable> {
  const backup = await backups.storedBackup(platform.db, key.org_id, backupId);
  const storage = platform.ports.storages.named[backup?.storage ?? ""];
  if (backup === undefined || storage === undefined)
    throw new Refused("conflict", { error: "The backup was deleted, or its storage is no longer configured." });
  const { storage_key, sha256 } = backup;
  return backups.unpackArchive({ storage, key: storage_key ?? "", sha256: sha256 ?? "", signal, onBytes: () => {} });
}

/** Sends a backup of files as a tar archive. */
async function serveFiles(opened: Sent, backup: backups.StoredBackup, tunnel: Tunnel): Promise<void> {
  const { storages } = opened.platform.ports;
  const list = { key: backup.storage_key ?? "", sha256: backup.sha256 ?? "", signal: tunnel.signal, onBytes: () => {} };
  await send(opened, backups.readPieces(list, backup.storage ?? "", storages), tunnel);
}

type Sent = Pick<Opened, "platform" | "encrypted">;

async function send({ platform, encrypted }: Sent, content: Readable, { bytes, signal }: Tunnel): Promise<void> {
  await pipeline(encrypted ? await platform.ports.storages.encrypt(content) : content, bytes, { signal });
}

async function importArchive({ platform, own, spec }: Opened, { bytes, signal }: Tunnel): Promise<void> {
  await platform.ports.postgresHost.restore(own, spec.database_name, { archive: bytes, signal });
}

/** The client's own program fills the database; the client reports when the import is complete. */
async function importByClient(opened: Opened, tunnel: Tunnel): Promise<void> {
  const isWhole = new Promise<boolean>((resolve) => {
    tunnel.onTold((message) => message["type"] === "imported" && resolve(true));
    tunnel.bytes.once("close", () => resolve(false));
  });
  await letIn(opened, tunnel);
  if (!(await isWhole)) throw new Refused("conflict", { error: "The import was cancelled." });
  await opened.platform.ports.postgresHost.dropSessionRole(opened.own, opened.role ?? "");
}

/** Resolves when the client has ended the tunnel. */
async function ended({ bytes, signal }: Tunnel): Promise<void> {
  bytes.resume();
  await new Promise<void>((resolve) => {
    bytes.once("close", resolve).once("end", resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Connects the session's client to the server, which checks the password itself. Up to here the tunnel secures the connection. */
async function carryConnection(
  address: ServerAddress,
  tls: ServerTls | null,
  { bytes, signal }: Tunnel,
): Promise<void> {
  const server = await connectServer(address, tls).catch(() => {
    throw new Refused("unavailable", { error: "The database server does not answer. Try again in a moment." });
  });
  await carryServer(bytes, server, signal);
}
