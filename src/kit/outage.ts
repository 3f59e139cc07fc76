import { diskFault } from "./disk-fault.ts";

// SQLSTATE classes and codes (PostgreSQL, appendix A) of errors that a retry may solve: connection failures, resources, shutdown, unavailable lock.
const passingStates = /^(?:08|53|57P0)|^(?:55P03|25P03)$/;
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

/** Classifies an error that is no fault of the code: a full or read-only disk, or a dependency that is `away`. Undefined for a fault. */
export function outageOf(error: unknown): "disk_full" | "disk_read_only" | "away" | undefined {
  const fault = diskFault(error);
  if (fault !== undefined) return fault === "full" ? "disk_full" : "disk_read_only";
  const { code = "", message = "" } = (error ?? {}) as { code?: string; message?: string };
  return passingStates.test(code) || passingErrno.has(code) || passingMessages.test(message) ? "away" : undefined;
}
