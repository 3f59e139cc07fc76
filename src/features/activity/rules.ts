import type { entryKinds } from "../../contract/activity.ts";
import type { Result } from "../../contract/routes.ts";
import { settingsWords } from "./settings-words.ts";

export type EntryKind = (typeof entryKinds)[number];
type Entry = Result<"activity.list">["activity"][number];

export interface EntryRow {
  readonly id: string;
  readonly at: string;
  /** `at` in microseconds, the full precision of the database. */
  readonly at_us: number;
  readonly action: string;
  readonly target: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly actor_token_id: string | null;
  readonly actor_name: string;
  readonly project: string | null;
  /** The number of the build that `target` is the id of. */
  readonly build_number: number | null;
  /** When the backup was made that `target` is the id of. */
  readonly backup_at: string | null;
}

/** The kind of an action, by the noun it starts with. */
const kinds: Readonly<Record<string, EntryKind>> = {
  project: "project",
  deployment: "deployment",
  build: "build",
  replica: "replica",
  preview: "project",
  process: "deployment",
  run: "deployment",
  follow: "deployment",
  env: "env",
  domain: "domain",
  cron: "cron",
  database: "database",
  disk: "project",
  data: "data",
  backup: "backup",
  restore: "backup",
  verification: "backup",
  drill: "backup",
  token: "access",
  member: "access",
  invite: "access",
  sessions: "access",
  person: "access",
  passkey: "access",
  identity: "access",
  provider: "access",
  ssh_key: "access",
  webhook: "access",
  registry: "access",
  approval: "access",
  org: "organization",
};

export function prefixesOf(wanted: readonly EntryKind[]): string[] {
  return Object.keys(kinds).filter((prefix) => wanted.includes(kinds[prefix] as EntryKind));
}

export function kindOf(action: string): EntryKind {
  return kinds[action.slice(0, action.indexOf("."))] ?? "organization";
}

export interface EntryCursor {
  readonly at_us: number;
  readonly id: string;
}

export function formatEntryCursor({ at_us, id }: EntryCursor): string {
  return `${at_us}:${id}`;
}

export function parseEntryCursor(text: string): EntryCursor | undefined {
  const found = /^(\d{1,16}):([a-z]{3}_[0-9a-z]{1,40})$/.exec(text);
  return found ? { at_us: Number(found[1]), id: found[2] as string } : undefined;
}

export function presentEntry(row: EntryRow): Entry {
  const { id, at, action, target, project, actor_name: name, actor_token_id: token_id } = row;
  const isPlatform = token_id === null && name === "berth";
  const type = token_id === null ? (isPlatform ? ("platform" as const) : ("person" as const)) : ("token" as const);
  const actor = { type, name, token_id };
  const kind = kindOf(action);
  return {
    id,
    at,
    kind,
    action,
    summary: summaryOf(row),
    actor,
    project,
    target,
    detail: row.detail,
    link: linkOf(row),
  };
}

type Telling = Pick<EntryRow, "target" | "detail" | "build_number" | "backup_at">;

const deploymentName = ({ detail }: Telling) =>
  `Deployment ${word(detail["number"])} (${word(detail["trigger"])}, ${short(detail["commit"])})`;
const named = (detail: EntryRow["detail"]) => (typeof detail["name"] === "string" ? ` "${detail["name"]}"` : "");
const because = ({ detail }: Telling) => (typeof detail["reason"] === "string" ? `: ${detail["reason"]}` : "");
const buildOf = ({ build_number: number }: Telling) => (number === null ? "" : `: build ${number}`);
/** Backups have no number: people know them by their time. */
const backupOf = ({ backup_at: at, detail }: Telling) => {
  if (at !== null) return `the backup of ${minuteOf(at)}`;
  return typeof detail["restore_to"] === "string" ? `the state of ${minuteOf(detail["restore_to"])}` : "a backup";
};
const restoredOf = (row: Telling) => {
  const { path, folder } = row.detail;
  if (typeof path !== "string") return backupOf(row);
  return `${path} from ${typeof folder === "string" ? `.restored/${folder}` : backupOf(row)}`;
};
const minuteOf = (at: string) => `${at.slice(0, 16).replace("T", " ")} UTC`;
const byMeans = ({ detail: { means } }: Telling) =>
  means === "passkey" || means === "fresh sign-in" ? ` by ${means}` : "";
const approvalOf = ({ target, detail }: Telling) => word(detail["request"] ?? target);
const short = (commit: unknown) => word(commit).slice(0, 8);

/** Says which branch still holds newer commits after a rollback, and which of the project's variables the rollback changes. */
function branchAndVariables({ branch, changed_variables: changed }: EntryRow["detail"]): string {
  const kept = typeof branch === "string" ? `; ${branch} still holds the newer commits` : "";
  return Array.isArray(changed) && changed.length > 0 ? `${kept}; changed variables: ${changed.join(", ")}` : kept;
}

/** Summaries of actions whose name alone is not enough. */
const sentences: Readonly<Record<string, (row: Telling) => string>> = {
  "deployment.activated": (row) => `${deploymentName(row)} went live`,
  "deployment.failed": (row) => `${deploymentName(row)} failed${because(row)}`,
  "deployment.rehearsal_requested": (row) => `Rehearsal of ${short(row.detail["commit"])} requested${buildOf(row)}`,
  "deployment.requested": (row) => `Redeploy of ${short(row.detail["commit"])} requested${buildOf(row)}`,
  "deployment.rollback_requested": ({ detail }) =>
    `Rollback${detail["to"] === undefined ? "" : ` from #${word(detail["from"])} to #${word(detail["to"])}`} requested; it is deployment ${word(detail["number"])}${branchAndVariables(detail)}`,
  "build.source_uploaded": (row) => `Source uploaded${buildOf(row)}`,
  "build.source_changed": (row) => `Files changed${buildOf(row)}`,
  "backup.requested": () => "Backup requested",
  "backup.completed": () => "Backup completed",
  "backup.failed": () => "Backup failed",
  "disk.file_written": ({ detail }) => `File ${word(detail["path"])} written to the storage folder`,
  "backup.path_restore_requested": (row) => `Restore of ${restoredOf(row)} requested`,
  "backup.restore_requested": (row) => `Restore of ${backupOf(row)} requested`,
  "backup.verification_requested": (row) => `Verification of ${backupOf(row)} requested`,
  "restore.completed": (row) => `Restore of ${restoredOf(row)} completed`,
  "restore.failed": (row) => `Restore of ${restoredOf(row)} failed`,
  "verification.completed": (row) => `Verification of ${backupOf(row)} completed`,
  "drill.requested": () => "Drill requested",
  "drill.completed": () => "Drill completed",
  "drill.failed": () => "Drill failed",
  "database.branch_created": ({ target }) => `Branch ${word(target)} of the database requested`,
  "database.branch_deleted": ({ target }) => `Branch ${word(target)} of the database deleted`,
  "database.branch_ended": ({ target }) => `Branch ${word(target)} of the database ended`,
  "database.branch_failed": (row) => `Branch ${word(row.target)} of the database failed${because(row)}`,
  "database.archive_set": ({ target }) => `The database's archive turned ${word(target)}`,
  "verification.failed": (row) => `Verification of ${backupOf(row)} failed`,
  "approval.requested": (row) => `Approval requested: ${approvalOf(row)}`,
  "approval.approved": (row) => `Approved${byMeans(row)}: ${approvalOf(row)}`,
  "approval.withdrawn": (row) => `Withdrawn: ${approvalOf(row)}`,
  "approval.denied": (row) => `Denied${byMeans(row)}: ${approvalOf(row)}`,
  "build.cancelled": ({ detail }) => `Build ${word(detail["number"])} cancelled`,
  "build.failed": (row) =>
    `Build ${word(row.detail["number"])} of ${short(row.detail["commit"])} failed${because(row)}`,
  "cron.run_failed": ({ target, detail }) => {
    const answer =
      detail["http_status"] === undefined
        ? (detail["reason"] ?? detail["status"])
        : `status ${word(detail["http_status"])}`;
    return `Cron job ${target ?? ""} failed${repeated(detail["failures"], detail["since"])}: ${word(answer)}`;
  },
  "cron.set": ({ target }) => `Cron job ${target} saved`,
  "cron.restored": ({ target }) => `Cron job ${target} restored to what it was before its last change`,
  "cron.deleted": ({ target }) => `Cron job ${target} removed`,
  "cron.run_requested": ({ target }) => `Run of the cron job ${target} requested`,
  "cron.imported": ({ detail }) => `Cron jobs imported: ${listed(detail["jobs"])}`,
  "replica.crashed": ({ target, detail }) =>
    `Crashed${repeated(detail["crashes"], detail["since"])}: ${target}, exit code ${word(detail["exit_code"] ?? "unknown")}; Berth starts it again`,
  "replica.out_of_memory": ({ target, detail }) =>
    `Out of memory${repeated(detail["crashes"], detail["since"])}: ${target}; Berth starts it again`,
  "process.changed": ({ target, detail }) =>
    `Process type ${word(target)}: ${listed(Object.entries(detail).map(([name, value]) => `${name} ${String(value)}`))}`,
  "run.requested": ({ detail }) => `One-off command ${word(detail["number"])} requested`,
  "run.cancelled": ({ detail }) => `One-off command ${word(detail["number"])} cancelled`,
  "follow.set": ({ target, detail }) => `Follows ${word(detail["branch"])} of ${word(target)}`,
  "follow.deleted": ({ target }) => `No longer follows ${word(target)}`,
  "follow.fetched": ({ target }) => `Fetch of ${word(target)} requested`,
  "process.restarted": ({ target }) => `Restart of ${word(target)} requested`,
  "project.scaled": ({ detail }) =>
    `Scaled: ${word(detail["replicas"])} ${detail["replicas"] === 1 ? "replica" : "replicas"}`,
  "project.maintenance": ({ detail }) => `Maintenance page switched ${detail["on"] === true ? "on" : "off"}`,
  "project.renamed": ({ target, detail }) => `Renamed from ${word(detail["from"])} to ${word(target)}`,
  "org.machine_join_shown": () => "Script for another machine shown",
  "org.machine_changed": ({ target, detail }) =>
    detail["takes_replicas"] === false ? `Machine ${target} drained` : `Machine ${target} takes replicas again`,
  "org.machine_removed": ({ target }) => `Machine ${target} removed`,
  "org.platform_backup_requested": () => "Backup of the platform requested",
  "org.platform_upgraded": ({ target }) => `Upgrade of the platform to ${word(target)} requested`,
  "org.platform_finalized": ({ target }) => `Schema of Berth ${word(target)} finalized`,
  "project.moved": ({ detail }) => `Move to the runtime ${word(detail["runtime"])} requested`,
  "preview.created": ({ target }) => `Preview of ${target} requested`,
  "preview.changed": ({ target }) => `Preview of ${target} gets changed files`,
  "preview.deleted": ({ target }) => `Preview of ${target} deleted`,
  "preview.pinned": ({ target }) => `Preview of ${target} pinned`,
  "preview.unpinned": ({ target }) => `Preview of ${target} unpinned`,
  "preview.promoted": ({ target }) => `What runs in the preview of ${target} goes live`,
  "preview.ended": ({ target }) => `Preview of ${target} ended, as its time was over or its project was deleted`,
  "project.settings_changed": ({ detail }) => `Settings changed: ${settingsWords(detail)}`,
  "env.set": ({ target }) => `Variable ${target} set`,
  "env.imported": ({ target }) => `Variables set: ${target}`,
  "env.deleted": ({ target }) => `Variable ${target} removed`,
  "domain.attached": ({ target, detail: { redirect_to: other } }) =>
    other === null
      ? `Domain ${target} no longer redirects`
      : `Domain ${target} ${other === undefined ? "attached" : `redirects to ${word(other)}`}`,
  "domain.detached": ({ target }) => `Domain ${target} detached`,
  "domain.not_served": ({ target }) => `${target} is no longer served`,
  "domain.lost": ({ target }) => `The DNS records of ${target} no longer point here`,
  "domain.moved_away": ({ target }) => `${target} moved to another organization, which proved that it owns the domain`,
  "data.inserted": ({ target }) => `Row added to ${target}`,
  "data.updated": ({ target, detail }) => `Row of ${target} changed: ${listed(detail["columns"])}`,
  "data.connection_ended": ({ target }) => `Connection ${target} to the database ended`,
  "data.deleted": ({ target }) => `Row deleted from ${target}`,
  "token.created": ({ detail }) => `Token${named(detail)} created`,
  "token.connected": ({ detail }) => `Program${named(detail)} connected`,
  "token.deleted": ({ detail }) => `Token${named(detail)} revoked`,
  "member.joined": ({ target, detail }) => `${target} joined as ${word(detail["role"])}`,
  "member.updated": ({ target, detail }) => `Rights of ${target} changed: ${word(detail["role"])}${stillOwned(detail)}`,
  "member.removed": ({ target, detail }) => `${target} was removed${stillOwned(detail)}`,
  "member.left": ({ target, detail }) => `${target} left the organization${stillOwned(detail)}`,
  "invite.created": ({ detail }) => `A person was invited as ${word(detail["role"])}`,
  "invite.revoked": () => "An invitation was revoked",
  "sessions.ended": ({ target }) => `${target} signed out everywhere`,
  "person.renamed": ({ target, detail }) => `${word(detail["before"])} is now named ${target}`,
  "person.link_made": ({ target }) => `The operator made a sign-in link for ${target}`,
  "person.disabled": ({ target, detail }) => `The operator disabled ${target}${stillOwned(detail)}`,
  "person.enabled": ({ target }) => `The operator enabled ${target} again`,
  "passkey.added": ({ target, detail }) => `${target} added a passkey${named(detail)}`,
  "passkey.renamed": ({ target, detail }) => `${target} named a passkey${named(detail)}`,
  "passkey.deleted": ({ target }) => `${target} deleted a passkey`,
  "identity.linked": ({ target, detail }) => `${target} signs in with ${word(detail["issuer"])} too`,
  "identity.unlinked": ({ target }) => `${target} unlinked an account of an identity provider`,
  "provider.set": ({ target, detail }) => `Sign-in with the provider ${target} (${word(detail["issuer"])}) set`,
  "provider.deleted": ({ target }) => `Sign-in with the provider ${target} removed`,
  "ssh_key.created": ({ detail }) => `SSH key${named(detail)} added`,
  "ssh_key.deleted": ({ detail }) => `SSH key${named(detail)} removed`,
  "registry.set": ({ target }) => `Login for the registry ${target} stored`,
  "registry.deleted": ({ target }) => `Login for the registry ${target} removed`,
  "webhook.created": ({ detail }) => `Webhook${named(detail)} added`,
  "webhook.updated": ({ detail }) => `Webhook${named(detail)} changed`,
  "webhook.deleted": ({ detail }) => `Webhook${named(detail)} removed`,
  "webhook.tested": ({ detail }) => `Webhook${named(detail)} tested`,
  "webhook.disabled": (row) => `Webhook${named(row.detail)} was switched off${because(row)}`,
};

/** Counts what is one entry although it happened several times: ` 16 times since 2026-01-02 23:00 UTC`. */
function repeated(times: unknown, since: unknown): string {
  if (typeof times !== "number" || times < 2 || typeof since !== "string") return "";
  return ` ${times} times since ${minuteOf(new Date(since).toISOString())}`;
}

// Details come from the database and may have any type.
function word(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Names the organizations whose only owner is a token that a former administrator has seen. */
function stillOwned({ last_owner_of: slugs }: Readonly<Record<string, unknown>>): string {
  return Array.isArray(slugs) ? `; an owner token that they made is the only owner of ${listed(slugs)}` : "";
}

function listed(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : "";
}

/** Returns what happened as a sentence without its full stop. */
function summaryOf(row: EntryRow): string {
  const sentence = sentences[row.action]?.(row);
  if (sentence !== undefined) return sentence;
  const words = row.action.replace(/[._]/g, " ").replace(/^ssh/, "SSH").replace(/^org /, "organization ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${isTold(row) ? `: ${row.target}` : ""}`;
}

/** Returns whether the target says more than the entry's project does. An id says nothing to people. */
function isTold({ target, project }: EntryRow): boolean {
  return target !== null && target !== project && !/^[a-z]{3}_[0-9a-z]{26}$/.test(target);
}

/** Dashboard paths below a project's path. */
const places: Readonly<Partial<Record<EntryKind, string>>> = {
  project: "",
  deployment: "/deployments",
  build: "/builds",
  replica: "/logs",
  env: "/env",
  domain: "/domains",
  cron: "/cron",
  database: "/database",
  data: "/data/tables",
  backup: "/backups",
};

const placesOfOrganization: Readonly<Record<string, string>> = {
  token: "/v1/api-tokens",
  member: "/v1/members",
  invite: "/v1/invites",
  ssh_key: "/v1/ssh-keys",
  approval: "/v1/approvals",
  webhook: "/v1/webhooks",
  registry: "/v1/registries",
};

function linkOf({ action, target, project }: EntryRow): string | null {
  if (target?.startsWith("bld_") === true) return `/v1/builds/${target}`;
  const place = places[kindOf(action)];
  if (project !== null && place !== undefined) return `/v1/projects/${project}${place}`;
  return placesOfOrganization[action.slice(0, action.indexOf("."))] ?? null;
}
