import { readFileSync } from "node:fs";
import { createDiskStorage } from "../adapters/storage-disk/disk-storage.ts";
import { createS3Storage, type S3StorageOptions } from "../adapters/storage-s3/s3-storage.ts";
import type { Storages } from "../ports/storage.ts";
import type { Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";

type StorageConfig = Pick<
  Config,
  "s3Endpoint" | "s3Bucket" | "s3Region" | "s3Prefix" | "s3AccessKeyId" | "s3SecretKey" | "s3SecretKeyFile"
>;

/**
 * Returns the storages of backups: always the disk, because older backups may be there, and an S3-compatible store, which is the default
 * once it is configured.
 */
export function storagesOf(config: StorageConfig, dir: string): Storages {
  const disk = createDiskStorage({ dir });
  const bucket = bucketOf(config);
  if (bucket === null) return { standard: "disk", named: { disk } };
  return { standard: "s3", named: { disk, s3: createS3Storage(bucket) } };
}

/** Returns the S3-compatible store's options; null if none is configured. Throws `StartRefused` if its settings are incomplete or wrong. */
function bucketOf(config: StorageConfig): S3StorageOptions | null {
  const { s3Endpoint: endpoint, s3Bucket: bucket, s3AccessKeyId: accessKeyId } = config;
  const secretKey = config.s3SecretKeyFile === null ? config.s3SecretKey : readSecret(config.s3SecretKeyFile);
  const given = {
    BERTH_S3_ENDPOINT: endpoint,
    BERTH_S3_BUCKET: bucket,
    BERTH_S3_ACCESS_KEY_ID: accessKeyId,
    BERTH_S3_SECRET_KEY: secretKey,
  };
  const missing = Object.entries(given)
    .filter(([, value]) => value === null)
    .map(([name]) => name);
  if (missing.length === Object.keys(given).length) return null;
  if (endpoint === null || bucket === null || accessKeyId === null || secretKey === null) {
    throw new StartRefused(`For backups in an S3-compatible store these settings are missing: ${missing.join(", ")}.`);
  }
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint)) {
    throw new StartRefused("BERTH_S3_ENDPOINT must be an address such as https://s3.eu-central-1.amazonaws.com.");
  }
  return { endpoint, bucket, accessKeyId, secretKey, region: config.s3Region, prefix: config.s3Prefix };
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new StartRefused(`BERTH_S3_SECRET_KEY_FILE cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}
