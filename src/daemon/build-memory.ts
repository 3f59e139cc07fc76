const mib = 1024 * 1024;

/**
 * Returns half of the machine's memory, or of the control group's limit, in MiB, so that a build of the usual size fits beside its
 * neighbours. At least 2048, at most 8192.
 */
export function buildMemoryMibOf(machineBytes: number, limitBytes = 0): number {
  // Without a limit, Node.js reports 0, or 2^64 in a control group of version 2.
  const bytes = limitBytes === 0 ? machineBytes : Math.min(machineBytes, limitBytes);
  return Math.min(8192, Math.max(2048, Math.floor(bytes / 2 / mib)));
}
