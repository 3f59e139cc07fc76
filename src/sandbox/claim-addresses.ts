import { run } from "../kit/exec.ts";

/** Claims a range of addresses with an unreachable route; false if it has one. The kernel accepts one, so no two platforms share a range. */
export async function claimAddresses(ip: string, network: string): Promise<boolean> {
  const { stderr } = await run({ file: ip, args: ["route", "add", "unreachable", network] }, { timeoutMs: 10_000 });
  return !stderr.includes("File exists");
}
