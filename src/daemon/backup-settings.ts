import { flag, optionalText, text, wholeNumber } from "./settings.ts";

/** Settings for when backups are made, how long they are kept, and where. */
export const backupSettings = {
  backupAgeHours: wholeNumber(
    "BERTH_BACKUP_AGE_HOURS",
    30,
    [1, 8760],
    "How old the newest backup of a database may be before a check warns.",
  ),
  backupDaily: flag("BERTH_BACKUP_DAILY", true, "Back every database up once a day."),
  backupStartHour: wholeNumber(
    "BERTH_BACKUP_START_HOUR",
    0,
    [0, 23],
    "From which hour on (UTC) the daily backups are made.",
  ),
  backupWindowHours: wholeNumber(
    "BERTH_BACKUP_WINDOW_HOURS",
    24,
    [1, 24],
    "Over how many hours of the day the daily backups are spread.",
  ),
  backupKeepDaily: wholeNumber(
    "BERTH_BACKUP_KEEP_DAILY",
    7,
    [1, 3650],
    "For how many days the daily backups are kept.",
  ),
  backupKeepWeekly: wholeNumber(
    "BERTH_BACKUP_KEEP_WEEKLY",
    4,
    [0, 520],
    "For how many weeks one daily backup of each week is kept.",
  ),
  backupKeepManual: wholeNumber(
    "BERTH_BACKUP_KEEP_MANUAL",
    20,
    [1, 10_000],
    "How many manual backups of each project are kept.",
  ),
  finalBackupDays: wholeNumber(
    "BERTH_FINAL_BACKUP_DAYS",
    365,
    [0, 36_500],
    "For how many days the final backup of a purged project is kept. 0: for ever.",
  ),
  finalBackupsMib: wholeNumber(
    "BERTH_FINAL_BACKUPS_MIB",
    51_200,
    [64, 1_073_741_824],
    "How much disk the final backups of an organization's purged projects may use; over this limit the oldest are deleted, but never the newest. Backups in S3 don't count.",
  ),
  backupHours: wholeNumber("BERTH_BACKUP_HOURS", 6, [1, 240], "How long one backup, restore or verification may take."),
  concurrentBackups: wholeNumber(
    "BERTH_CONCURRENT_BACKUPS",
    2,
    [1, 64],
    "Backups, restores and verifications at the same time.",
  ),
  s3Endpoint: optionalText(
    "BERTH_S3_ENDPOINT",
    "Keep backups in an S3-compatible store at this address instead of the data folder.",
  ),
  s3Bucket: optionalText("BERTH_S3_BUCKET", "The bucket in that store; it must exist."),
  s3Region: text("BERTH_S3_REGION", "us-east-1", "The bucket's region."),
  s3Prefix: text("BERTH_S3_PREFIX", "berth/", "The prefix of all backups' names in the bucket."),
  s3AccessKeyId: optionalText("BERTH_S3_ACCESS_KEY_ID", "The id of the access key for the bucket."),
  s3SecretKey: optionalText("BERTH_S3_SECRET_KEY", "The secret of that access key; BERTH_S3_SECRET_KEY_FILE is safer."),
  s3SecretKeyFile: optionalText("BERTH_S3_SECRET_KEY_FILE", "The file that holds the secret of that access key."),
};
