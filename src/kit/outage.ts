import { diskFault } from "./disk-fault.ts";

// SQLSTATE classes and codes (PostgreSQL, appendix A): connection trouble, resources, shutdown; deadlock, serialisation and
// a lock that was not to be had, where the same request works a moment later.
const passingStates = /^(?:08|53|57P0)|^(?:40001|40P01|55P03|25P03)$/;
const passingErrno = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOENT",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);
const passingMessages =
  /^(?:Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/;

/**
 * What the platform lacks when this error is no fault of its code: a disk that is full or read-only, or something else that is away for
 * a moment, such as the database. Undefined for a fault.
 */
export function outageOf(error: unknown): "disk_full" | "disk_read_only" | "away" | undefined {
  const fault = diskFault(error);
  if (fault !== undefined) return fault === "full" ? "disk_full" : "disk_read_only";
  const { code = "", message = "" } = (error ?? {}) as { code?: string; message?: string };
  return passingStates.test(code) || passingErrno.has(code) || passingMessages.test(message) ? "away" : undefined;
}
