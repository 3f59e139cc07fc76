/** Folders whose contents a copy of a data folder leaves out, as pg_basebackup does: the log and what the server makes anew. */
export const emptiedFolders = [
  "pg_wal",
  "pg_replslot",
  "pg_dynshmem",
  "pg_notify",
  "pg_serial",
  "pg_snapshots",
  "pg_stat_tmp",
  "pg_subtrans",
];

/** Files of the running server, and of earlier copies, that a copy leaves out. */
export const runningFiles = [
  "postmaster.pid",
  "postmaster.opts",
  "backup_label",
  "backup_label.old",
  "backup_manifest",
];
