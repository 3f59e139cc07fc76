import { run } from "../kit/exec.ts";

/**
 * Claims a range of addresses with an unreachable route; returns false if the range has one already. The kernel accepts such a route once,
 * so two platforms that start at the same moment never get the same range.
 */
export async function claimAddresses(ip: string, network: string): Promise<boolean> {
  const { stderr } = await run({ file: ip, args: ["route", "add", "unreachable", network] }, { timeoutMs: 10_000 });
  return !stderr.includes("File exists");
}
