const mib = 1024 * 1024;

/** Half of the machine's memory, so that a build of the usual size fits beside its neighbours. */
export function buildMemoryMibOf(machineBytes: number): number {
  return Math.min(8192, Math.max(2048, Math.floor(machineBytes / 2 / mib)));
}
