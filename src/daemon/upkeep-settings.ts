import type { DayHours } from "../kit/day-hours.ts";
import { choice, flag, list, optional, setting, shown, whole } from "./settings.ts";

export const operationSettings = {
  onStop: choice("BERTH_ON_STOP", ["stop", "keep"]).means(
    "What happens to applications, edge and databases when the control plane stops: they stop too, or keep running.",
  ),
  install: flag("BERTH_INSTALL", true).means(
    "Install missing parts of the machine (PostgreSQL, bubblewrap …) when that is possible.",
  ),
  releaseUrl: setting("BERTH_RELEASE_URL", "", readPlace).means(
    "The address or folder of Berth's releases: where `berth platform upgrade` finds them, and newer versions are looked for once a day. Unset: not at all.",
  ),
  upgradeWatchSeconds: whole("BERTH_UPGRADE_WATCH_SECONDS", 60, [1, 3600]).means(
    "How long an upgrade watches the new version before it is complete; until then it goes back by itself.",
  ),
  example: flag("BERTH_EXAMPLE", true).means("Deploy an example application on the first start."),
  logFormat: choice("BERTH_LOG_FORMAT", ["text", "json"]).means("How the control plane logs to standard output."),
  logLevel: choice("BERTH_LOG_LEVEL", ["info", "debug", "warn", "error"]).means("The lowest level that is logged."),
  uidBase: whole("BERTH_UID_BASE", 20_000, [1000, 4_000_000]).means(
    "As root, a project's processes run under this user id plus the project's number, and the edge under this one itself; its database under the number 15000 higher, below which are the control plane's own database and git.",
  ),
  keyFile: optional("BERTH_KEY_FILE").means(
    "The file with the key that encrypts secrets in the database; default: `secrets.key` in the data folder.",
  ),
  caFile: optional("BERTH_CA_FILE").means(
    "Certificates that applications and builds trust besides the system's; default: `SSL_CERT_FILE`.",
  ),
  allowUnisolated: flag("BERTH_ALLOW_UNISOLATED", false).means(
    "Run code of all organizations even on a machine without namespaces, which cannot isolate it.",
  ),
  smtpUrl: optional("BERTH_SMTP_URL").means(
    "The mail server for messages to the operator and for organizations' e-mail webhooks, such as `smtp://user:password@mail.example.com:587`; `smtps:` uses TLS from the start.",
  ),
  mailFrom: optional("BERTH_MAIL_FROM").means("The sender of mails to the operator."),
  mailTo: list("BERTH_MAIL_TO", (value) =>
    /^[^\s@]+@[^\s@]+$/.test(value) ? undefined : "is not an e-mail address",
  ).means("The recipients of mails to the operator. Everyone who gets these mails can approve requests."),
  webhookUrl: optional("BERTH_WEBHOOK_URL").means(
    "The URL that receives messages to the operator as signed POST requests.",
  ),
  webhookSecret: optional("BERTH_WEBHOOK_SECRET").means("The key that signs the requests to BERTH_WEBHOOK_URL."),
  monitorSeconds: whole("BERTH_MONITOR_SECONDS", 15, [1, 60]).means("How often the platform runs its checks."),
  pageLookSeconds: whole("BERTH_PAGE_LOOK_SECONDS", 60, [0, 86_400]).means(
    "How often the platform requests each application's first page to measure its load time; 0: never.",
  ),
};

export const retentionSettings = {
  restartHours: setting("BERTH_RESTART_HOURS", "3-5", (given = "3-5") => readHours("BERTH_RESTART_HOURS", given)).means(
    "The hours of the day (UTC) in which databases are restarted, one by one, whose PostgreSQL an update of Debian has replaced; `never`: Berth restarts none.",
  ),
  historyDays: whole("BERTH_HISTORY_DAYS", 400, [30, 36_500]).means(
    "How long activity, ended approvals, builds with their logs and deployments are kept; each project keeps its newest 100 builds and deployments, and all that a rollback can use.",
  ),
  purgeDays: whole("BERTH_PURGE_DAYS", 0, [0, 3650]).means(
    "After how many days a deleted project is purged; a verified final backup is kept. 0: only on request.",
  ),
  previewHours: whole("BERTH_PREVIEW_HOURS", 72, [1, 8760]).means(
    "For how many hours after the last push of its branch a preview stays; then it is deleted with its data.",
  ),
  previewsPerProject: whole("BERTH_PREVIEWS_PER_PROJECT", 5, [0, 100]).means("How many previews a project may have."),
  previewCertificates: whole("BERTH_PREVIEW_CERTIFICATES", 20, [0, 1000]).means(
    "How many first certificates of previews are ordered in seven days, if no wildcard certificate covers them; further previews are served over HTTP only.",
  ),
  backupWindow: setting("BERTH_BACKUP_WINDOW", "0-24", (given = "0-24") =>
    readHours("BERTH_BACKUP_WINDOW", given),
  ).means("The hours of the day (UTC) over which daily backups are spread, such as `22-4`; `never`: no daily backups."),
  backupKeepDaily: whole("BERTH_BACKUP_KEEP_DAILY", 7, [1, 3650]).means(
    "For how many days the daily backups are kept.",
  ),
  archiveDays: whole("BERTH_ARCHIVE_DAYS", 7, [0, 365]).means(
    "For how many days back any moment of a database can be restored. 0: no log of databases is stored, only their backups.",
  ),
  archiveSeconds: whole("BERTH_ARCHIVE_SECONDS", 5, [1, 60]).means(
    "How often what databases have written is stored: how much can be lost with the disk, when backups are in S3.",
  ),
  rehearsalRows: whole("BERTH_REHEARSAL_ROWS", 100, [0, 1_000_000_000]).means(
    "How many rows of one table a deploy by a token in approval mode may remove without a person's approval, as its rehearsal shows.",
  ),
  rehearsalPercent: whole("BERTH_REHEARSAL_PERCENT", 1, [0, 100]).means(
    "How many percent of a table's rows it may remove; the smaller of both limits counts. Tables and columns always need an approval.",
  ),
  branchMinutes: whole("BERTH_BRANCH_MINUTES", 1440, [5, 20_160]).means(
    "How long a branch of a database lives when its request says nothing else.",
  ),
  branches: whole("BERTH_BRANCHES", 50, [0, 1000]).means("How many branches of databases the platform has at a time."),
  branchCopyMib: whole("BERTH_BRANCH_COPY_MIB", 10_240, [0, 1_073_741_824]).means(
    "The largest database that a branch copies byte by byte, where the file system cannot share blocks with a copy.",
  ),
  maskSeconds: whole("BERTH_MASK_SECONDS", 300, [1, 3600]).means("How long the SQL that masks a branch may run."),
  backupHours: whole("BERTH_BACKUP_HOURS", 6, [1, 240]).means("How long one backup, restore or verification may take."),
  finalBackupDays: whole("BERTH_FINAL_BACKUP_DAYS", 365, [0, 36_500]).means(
    "For how many days the final backup of a purged project is kept. 0: for ever.",
  ),
  finalBackupsMib: whole("BERTH_FINAL_BACKUPS_MIB", 51_200, [64, 1_073_741_824]).means(
    "How much disk the final backups of an organization's purged projects may use; over this limit the oldest are deleted, but never the newest. Backups in S3 don't count.",
  ),
  s3Url: optional("BERTH_S3_URL").means(
    "Keep backups in an existing bucket of an S3-compatible store instead of the data folder, such as `https://ACCESS-KEY-ID@s3.eu-central-1.amazonaws.com/bucket/berth/?region=eu-central-1`; names in the bucket begin with what follows it.",
  ),
  s3SecretKeyFile: optional("BERTH_S3_SECRET_KEY_FILE").means("The file that holds the secret of that access key."),
};

/** Reads an address or a folder. Berth shows it, so it holds no login. */
function readPlace(given: string | undefined): string | null {
  if (given?.includes("@") === true)
    throw new Error("BERTH_RELEASE_URL must hold no user or password: releases are signed, and need none.");
  return given ?? null;
}

function readHours(name: string, given: string): DayHours | null {
  if (given === "never") return null;
  const [, from, to] = /^(\d{1,2})-(\d{1,2})$/.exec(given)?.map(Number) ?? [];
  if (from === undefined || to === undefined || from > 23 || to > 24 || from === to)
    throw new Error(`${name} must be two different hours such as 22-4, or never, not ${shown(given)}.`);
  return { startHour: from, hours: to > from ? to - from : to - from + 24 };
}
